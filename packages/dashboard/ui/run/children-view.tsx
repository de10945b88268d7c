import type { Run } from '@coji/durably-core'
import { useState } from 'react'
import { Link } from 'wouter'
import { shortId } from '../format'
import { StatusChip } from '../parts/status-chip'
import { useChildren } from './use-children'

const PAGE_SIZE = 20

/** What the run triggered, and what its failure called. */
export function ChildrenView({ run }: { readonly run: Run }) {
  const [limit, setLimit] = useState(PAGE_SIZE)
  const children = useChildren(run, limit + 1)
  if (children.length === 0) return null
  return (
    <section className="card children" aria-label="Children">
      <h2>Children</h2>
      <ul>
        {children.slice(0, limit).map((child) => (
          <li key={child.id}>
            <Link href={`/runs/${child.id}`}>
              {child.jobName} <span className="muted">{shortId(child.id)}</span>
            </Link>
            <StatusChip run={child} />
          </li>
        ))}
      </ul>
      {children.length > limit && (
        <button type="button" className="quiet" onClick={() => setLimit(limit + PAGE_SIZE)}>
          Show more
        </button>
      )}
    </section>
  )
}
