import { toJson } from '../format'

const SHOWN = 8000

interface ValueViewProps {
  readonly label: string
  readonly value: unknown
}

/** What goes into a tool or comes out of it, for reading: each part by its name, and text as text. */
export function ValueView({ label, value }: ValueViewProps) {
  const parts = partsOf(value)
  return (
    <div className="value-view">
      <p className="value-label">{label}</p>
      {parts === null ? (
        <Text text={textOf(value)} />
      ) : (
        <dl>
          {parts.map(([name, part]) => (
            <div key={name} className={isShort(part) ? 'value-part is-short' : 'value-part'}>
              <dt>{name}</dt>
              <dd>{isShort(part) ? textOf(part) : <Text text={textOf(part)} />}</dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  )
}

function Text({ text }: { readonly text: string }) {
  const left = text.length - SHOWN
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be within reach of the keyboard
  return <pre tabIndex={0}>{left > 0 ? `${text.slice(0, SHOWN)}\n… ${left} more characters` : text}</pre>
}

function partsOf(value: unknown): [string, unknown][] | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const parts = Object.entries(value)
  return parts.length === 0 ? null : parts
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : toJson(value)
}

function isShort(value: unknown): boolean {
  const text = textOf(value)
  return text.length <= 60 && !text.includes('\n')
}
