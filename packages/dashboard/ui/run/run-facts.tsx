import type { Run } from '@coji/durably-core'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { useViewer } from '../api'
import { formatDuration, formatElapsed, formatMoment, shortId } from '../format'
import { durationOf } from '../run-status'
import { useNow } from '../use-now'

/** What is to be known of a run beside its steps. */
export function RunFacts({ run }: { readonly run: Run }) {
  const { me } = useViewer()
  const now = useNow(run.finishedAt === null)
  const duration = durationOf(run, now)
  const isRunning = run.finishedAt === null
  const queuedMs = (run.startedAt === null ? now : Date.parse(run.startedAt)) - Date.parse(run.createdAt)
  return (
    <dl className="facts">
      <Fact name="Created">{formatMoment(run.createdAt)}</Fact>
      <Fact name="Waited to start">{formatDuration(Math.max(0, queuedMs))}</Fact>
      <Fact name="Duration">
        {duration === null ? null : isRunning ? formatElapsed(duration) : formatDuration(duration)}
      </Fact>
      <Fact name="Ended">{run.finishedAt === null ? null : formatMoment(run.finishedAt)}</Fact>
      <Fact name="Attempt">{run.attempt === 0 ? null : String(run.attempt)}</Fact>
      <Fact name="Crashes">{run.crashCount === 0 ? null : `${run.crashCount} in a row`}</Fact>
      <Fact name="Worker">
        {run.ownerId !== null && me.workers ? <Link href="/workers">{run.ownerId}</Link> : run.ownerId}
      </Fact>
      <Fact name="Deadline">{run.deadlineAt === null ? null : formatMoment(run.deadlineAt)}</Fact>
      <Fact name="Version">{run.jobVersion}</Fact>
      <Fact name="Tenant">{run.tenant === '' ? null : run.tenant}</Fact>
      <Fact name="Priority">{run.priority === 0 ? null : String(run.priority)}</Fact>
      <Fact name="Concurrency key">
        {run.concurrencyKey === null ? null : `${run.concurrencyKey} (${run.concurrencyLimit} at a time)`}
      </Fact>
      <Fact name="Idempotency key">{run.idempotencyKey}</Fact>
      <Fact name="Parent">
        {run.parentRunId === null ? null : <Link href={`/runs/${run.parentRunId}`}>{shortId(run.parentRunId)}</Link>}
      </Fact>
      <Fact name="Forked from">
        {run.forkedFrom === null ? null : <Link href={`/runs/${run.forkedFrom}`}>{shortId(run.forkedFrom)}</Link>}
      </Fact>
      <Fact name="Labels">
        {Object.keys(run.labels).length === 0
          ? null
          : Object.entries(run.labels).map(([name, value]) => (
              <Link key={name} className="label" href={`/?${new URLSearchParams({ label: `${name}:${value}` })}`}>
                {name}={value}
              </Link>
            ))}
      </Fact>
    </dl>
  )
}

/** Nothing where there is nothing to say. */
function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  if (children === null) return null
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
