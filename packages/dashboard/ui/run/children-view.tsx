import { useRuns } from '@coji/durably-react'
import { Link } from 'wouter'
import { shortId } from '../format'
import { StatusChip } from '../parts/status-chip'

const PAGE_SIZE = 20

/** What the run triggered, and what its failure called. */
export function ChildrenView({ id }: { readonly id: string }) {
  const { runs, hasMore, showMore } = useRuns({ parent: id }, { pageSize: PAGE_SIZE })
  if (runs.length === 0) return null
  return (
    <section className="card children" aria-label="Children">
      <h2>Children</h2>
      <ul>
        {runs.map((run) => (
          <li key={run.id}>
            <Link href={`/runs/${run.id}`}>
              {run.jobName} <span className="muted">{shortId(run.id)}</span>
            </Link>
            <StatusChip run={run} />
          </li>
        ))}
      </ul>
      {hasMore && (
        <button type="button" className="quiet" onClick={showMore}>
          Show more
        </button>
      )}
    </section>
  )
}
