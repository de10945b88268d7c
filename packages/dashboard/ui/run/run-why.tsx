import type { Run } from '@coji/durably-core'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { useViewer } from '../api'
import { formatMoment, shortId } from '../format'
import { partsOf } from './explanation'

/** Why the run is not further: in the words of the engine, with links to the runs that they name. */
export function RunWhy({ run }: { readonly run: Run }) {
  const explanation = useExplanation(run)
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

function useExplanation({ id, version }: Run): string | null {
  const { api } = useViewer()
  const [explanation, setExplanation] = useState<string | null>(null)
  useEffect(() => {
    let isCurrent = true
    const ask = () =>
      api.explain(id).then(
        (words) => isCurrent && setExplanation(words),
        // The page says elsewhere that the server is away.
        () => undefined,
      )
    void ask()
    const timer = setInterval(ask, EVERY_MS)
    return () => {
      isCurrent = false
      clearInterval(timer)
    }
  }, [api, id, version])
  return explanation
}
