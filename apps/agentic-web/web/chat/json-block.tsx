import { toJson } from '../format'

const SHOWN = 8000

interface JsonBlockProps {
  readonly label: string
  readonly value: unknown
}

/** Text as it is, everything else as JSON. */
export function JsonBlock({ label, value }: JsonBlockProps) {
  const text = typeof value === 'string' ? value : toJson(value)
  const left = text.length - SHOWN
  return (
    <div className="json-block">
      <p className="json-label">{label}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be within reach of the keyboard */}
      <pre tabIndex={0}>{left > 0 ? `${text.slice(0, SHOWN)}\n… ${left} more characters` : text}</pre>
    </div>
  )
}
