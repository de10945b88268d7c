import { useId } from 'react'

interface JsonFieldProps {
  readonly label: string
  readonly text: string
  readonly problem: string | null
  readonly placeholder?: string
  readonly onChange: (text: string) => void
}

/** JSON to be written by hand; what is wrong with it is said below. */
export function JsonField({ label, text, problem, placeholder, onChange }: JsonFieldProps) {
  const ids = { field: useId(), problem: useId() }
  return (
    <>
      <label htmlFor={ids.field}>{label}</label>
      <textarea
        id={ids.field}
        rows={8}
        spellCheck={false}
        value={text}
        placeholder={placeholder}
        aria-invalid={problem !== null}
        aria-describedby={ids.problem}
        onChange={(event) => onChange(event.target.value)}
      />
      <p id={ids.problem} className="field-problem" role="alert">
        {problem}
      </p>
    </>
  )
}

/** Nothing is `undefined`. */
export function parseJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  if (text.trim() === '') return { value: undefined }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { problem: `This is no JSON: ${(error as Error).message}` }
  }
}
