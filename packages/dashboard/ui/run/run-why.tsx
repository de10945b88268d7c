import type { Run } from '@coji/durably-core'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { useViewer } from '../api'
import { formatMoment, shortId } from '../format'
import { Trouble } from '../parts/trouble'
import { partsOf } from './explanation'

/** Why the run is not further: in the words of the engine, with links to the runs that they name. */
export function RunWhy({ run }: { readonly run: Run }) {
  const { explanation, trouble } = useExplanation(run)
  if (trouble !== null) return <Trouble error={trouble} />
  if (explanation === null) return null
  return (
    <section className="why" aria-label="What the run is doing">
      <p>
        {partsOf(explanation, run).map((part) => {
          if (part.kind === 'text') return part.text
          if (part.kind === 'instant') {
            return (
              <time key={part.at} dateTime={part.text}>
                {formatMoment(part.text)}
              </time>
            )
          }
          return (
            <Link key={part.at} href={`/runs/${part.text}`}>
              {shortId(part.text)}
            </Link>
          )
        })}
      </p>
    </section>
  )
}

/** What a run waits for may change without a change of the run. */
const EVERY_MS = 5000

interface Explained {
  readonly explanation: string | null
  /** The connection on which a run is followed mends itself in silence: this is how people hear of it. */
  readonly trouble: Error | null
}

function useExplanation({ id, version }: Run): Explained {
  const { api } = useViewer()
  const [explained, setExplained] = useState<Explained>({ explanation: null, trouble: null })
  useEffect(() => {
    let isCurrent = true
    const ask = () =>
      api.explain(id).then(
        (explanation) => isCurrent && setExplained({ explanation, trouble: null }),
        (trouble: Error) => isCurrent && setExplained((before) => ({ ...before, trouble })),
      )
    void ask()
    const timer = setInterval(ask, EVERY_MS)
    return () => {
      isCurrent = false
      clearInterval(timer)
    }
  }, [api, id, version])
  return explained
}
