import type { ReactNode } from 'react'
import type { Tone } from '../run-status'

const WIDTH = 600
const HEIGHT = 140

interface FrameProps {
  readonly title: string
  /** What the chart shows, in words. */
  readonly summary: string
  readonly top: string
  readonly half: string
  /** Under its beginning and its end. */
  readonly ends: readonly [string, string]
  readonly legend: readonly (readonly [name: string, className: string])[]
  readonly children: ReactNode
}

/** What all charts have: a title, a scale from nothing to the top, the time below. */
function Frame({ title, summary, top, half, ends, legend, children }: FrameProps) {
  return (
    <figure className="card chart">
      <figcaption>
        <h2>{title}</h2>
        <ul className="legend small muted">
          {legend.map(([name, className]) => (
            <li key={name}>
              <span className={`swatch ${className}`} />
              {name}
            </li>
          ))}
        </ul>
      </figcaption>
      <div className="plot">
        <div className="scale small muted" aria-hidden="true">
          <span>{top}</span>
          <span>{half}</span>
          <span>0</span>
        </div>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary}>
          <path className="grid" d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
          {children}
        </svg>
        <div className="ends small muted" aria-hidden="true">
          <span>{ends[0]}</span>
          <span>{ends[1]}</span>
        </div>
      </div>
    </figure>
  )
}

type Common = Omit<FrameProps, 'children' | 'legend' | 'top' | 'half'> & {
  readonly top: number
  readonly format: (value: number) => string
}

interface BarsProps extends Common {
  readonly series: readonly { readonly name: string; readonly tone: Tone }[]
  /** Of each part of the time: what to say of it, and how much of each series. */
  readonly bars: readonly { readonly label: string; readonly values: readonly number[] }[]
}

/** How many of each, on top of each other. */
export function BarChart({ series, bars, top, format, ...frame }: BarsProps) {
  const legend = series.map(({ name, tone }) => [name, `is-${tone}`] as const)
  const width = WIDTH / bars.length
  const gap = Math.min(2, width / 4)
  return (
    <Frame {...frame} top={format(top)} half={format(top / 2)} legend={legend}>
      {bars.map(({ label, values }, index) => {
        let below = 0
        return (
          <g key={label}>
            <title>{label}</title>
            <rect className="hover" x={index * width} width={width} y={0} height={HEIGHT} />
            {values.map((value, place) => {
              below += value
              const tone = series[place]?.tone ?? 'quiet'
              return value === 0 ? null : (
                <rect
                  key={tone}
                  className={`is-${tone}`}
                  x={index * width + gap / 2}
                  width={width - gap}
                  y={HEIGHT - (below / top) * HEIGHT}
                  height={(value / top) * HEIGHT}
                />
              )
            })}
          </g>
        )
      })}
    </Frame>
  )
}

interface LinesProps extends Common {
  readonly lines: readonly {
    readonly name: string
    readonly className: string
    readonly stretches: readonly (readonly (readonly [index: number, value: number])[])[]
  }[]
  /** What to say of each part of the time. */
  readonly labels: readonly string[]
}

/** How high, over time. */
export function LineChart({ lines, labels, top, format, ...frame }: LinesProps) {
  const width = WIDTH / labels.length
  const at = ([index, value]: readonly [number, number]) =>
    [(index + 0.5) * width, HEIGHT - (value / top) * HEIGHT] as const
  return (
    <Frame
      {...frame}
      top={format(top)}
      half={format(top / 2)}
      legend={lines.map(({ name, className }) => [name, className])}
    >
      {lines.flatMap(({ name, className, stretches }) =>
        stretches.map((stretch) => {
          const points = stretch.map(at)
          // One by itself is a short line.
          const [first = [0, 0]] = points
          const drawn =
            points.length > 1
              ? points
              : [
                  [first[0] - width / 4, first[1]],
                  [first[0] + width / 4, first[1]],
                ]
          const key = `${name} ${stretch[0]?.[0]}`
          return (
            <polyline key={key} className={`line ${className}`} points={drawn.map((point) => point.join()).join(' ')} />
          )
        }),
      )}
      {labels.map((label, index) => (
        <g key={label}>
          <title>{label}</title>
          <rect className="hover" x={index * width} width={width} y={0} height={HEIGHT} />
        </g>
      ))}
    </Frame>
  )
}
