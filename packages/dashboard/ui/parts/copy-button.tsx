import { useNotices } from './notices'

export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const { tell } = useNotices()
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => tell(`${what} copied.`),
      () => tell('The browser does not let this page copy.', 'bad'),
    )
  return (
    <button type="button" className="quiet copy" aria-label={`Copy ${what}`} title="Copy" onClick={copy}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d="M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z" />
      </svg>
    </button>
  )
}
