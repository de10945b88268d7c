import { useState } from 'react'
import { toJson } from '../format'
import { CopyButton } from './copy-button'

/** More would make the page slow. */
const SHOWN_CHARACTERS = 20_000

interface JsonViewProps {
  readonly value: unknown
  /** For screen readers. */
  readonly label: string
}

export function JsonView({ value, label }: JsonViewProps) {
  const [isWhole, setIsWhole] = useState(false)
  const text = toJson(value)
  const isCut = !isWhole && text.length > SHOWN_CHARACTERS
  return (
    <div className="json-view">
      <CopyButton text={text} what={label} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be within reach of the keyboard */}
      <section tabIndex={0} aria-label={label}>
        <pre>{isCut ? text.slice(0, SHOWN_CHARACTERS) : text}</pre>
      </section>
      {isCut && (
        <button type="button" onClick={() => setIsWhole(true)}>
          Show all of it
        </button>
      )}
    </div>
  )
}
