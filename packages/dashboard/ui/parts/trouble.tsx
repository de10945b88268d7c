/** What is shown below is what was known before. */
export function Trouble({ error }: { readonly error: Error | null }) {
  if (error === null) return null
  return (
    <p className="trouble" role="alert">
      <strong>Not up to date.</strong> {error.message} It is tried again.
    </p>
  )
}
