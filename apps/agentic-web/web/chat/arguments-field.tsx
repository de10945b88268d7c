import { useId, useState } from 'react'
import { toJson } from '../format'

interface ArgumentsFieldProps {
  /** JSON. */
  readonly text: string
  readonly problem: string | null
  readonly problemId: string
  readonly onChange: (text: string) => void
}

/** What a tool is to be called with: a field for each part where all of them are text, JSON otherwise or by choice. */
export function ArgumentsField({ text, problem, problemId, onChange }: ArgumentsFieldProps) {
  const id = useId()
  const [isJson, setIsJson] = useState(false)
  const parts = isJson ? null : textParts(text)
  const described = { 'aria-invalid': problem !== null, 'aria-describedby': problemId }
  if (parts === null) {
    return (
      <div className="field">
        <label htmlFor={id}>Arguments</label>
        <textarea
          id={id}
          className="code"
          rows={3}
          spellCheck={false}
          value={text}
          {...described}
          onChange={(event) => onChange(event.target.value)}
        />
      </div>
    )
  }
  return (
    <>
      {Object.entries(parts).map(([name, part]) => (
        <div key={name} className="field">
          <label htmlFor={`${id} ${name}`}>{name}</label>
          <textarea
            id={`${id} ${name}`}
            className="code"
            rows={1}
            spellCheck={false}
            value={part}
            {...described}
            onChange={(event) => onChange(toJson({ ...parts, [name]: event.target.value }))}
          />
        </div>
      ))}
      <button type="button" className="quiet as-json" onClick={() => setIsJson(true)}>
        Edit as JSON
      </button>
    </>
  )
}

function textParts(text: string): Readonly<Record<string, string>> | null {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
    const parts = Object.values(value)
    return parts.length > 0 && parts.every((part) => typeof part === 'string')
      ? (value as Record<string, string>)
      : null
  } catch {
    return null
  }
}
