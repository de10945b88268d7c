import type { Run } from '@coji/durably-core'
import { useRead } from '@coji/durably-react'
import { Link } from 'wouter'
import { useViewer } from '../api'
import { formatMoment, shortId } from '../format'
import { partsOf } from './explanation'

/** Why the run is not further: in the words of the engine, with links to the runs that they name. */
export function RunWhy({ run }: { readonly run: Run }) {
  const { api } = useViewer()
  const { value } = useRead(`explanation ${run.id}`, () => api.explain(run.id))
  if (value === null) return null
  return (
    <section className="why" aria-label="What the run is doing">
      <p>
        {partsOf(value, run).map((part) => {
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
