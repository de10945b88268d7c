import type { Run } from '@coji/durably-core'
import type { ServedWorker } from '@coji/durably-server/client'
import { Link } from 'wouter'
import { formatCount, shortId } from '../format'
import { Fact } from '../parts/fact'
import { Moment } from '../parts/moment'
import type { StatusWords } from '../run-status'

interface WorkerRowProps {
  readonly worker: ServedWorker
  readonly isLeader: boolean
  /** Some of those that it holds. */
  readonly runs: readonly Run[]
}

export function WorkerRow({ worker, isLeader, runs }: WorkerRowProps) {
  const { workerId, capacity, running, assigned, holdsSuspect, placedJobs, labels, codeVersion } = worker
  const { label, tone } = presenceOf(worker)
  const more = running - runs.length
  return (
    <li className="card entry is-worker">
      <div className="entry-name">
        <h2>{workerId}</h2>
        <span className={`chip is-${tone}`}>{label}</span>
        {isLeader && <span className="chip is-active">Leader</span>}
        {Object.entries(labels).map(([name, value]) => (
          <span key={name} className="label">
            {name}={value}
          </span>
        ))}
      </div>
      <dl className="entry-facts">
        <Fact name="Heard of">
          <Moment at={worker.lastBeatAt} />
        </Fact>
        <Fact name="In hand">
          {formatCount(running)} of {formatCount(capacity)}
          {assigned > 0 && `, ${formatCount(assigned)} assigned to it`}
        </Fact>
        <Fact name="Version">{codeVersion ?? '–'}</Fact>
        <Fact name="There since">
          <Moment at={worker.firstBeatAt} />
        </Fact>
        {placedJobs.length > 0 && <Fact name="Placed jobs it takes">{placedJobs.join(', ')}</Fact>}
        {holdsSuspect && <Fact name="Beware">It holds a run that lost its worker again and again.</Fact>}
      </dl>
      {runs.length > 0 && (
        <ul className="held" aria-label={`Runs of ${workerId}`}>
          {runs.map(({ id, jobName, progress }) => (
            <li key={id}>
              <Link href={`/runs/${id}`}>
                {jobName} <span className="muted">{shortId(id)}</span>
              </Link>{' '}
              <span className="muted small">{progress?.message}</span>
            </li>
          ))}
          {more > 0 && <li className="muted">and {formatCount(more)} more</li>}
        </ul>
      )}
    </li>
  )
}

function presenceOf({ presence, isAlive }: ServedWorker): StatusWords {
  if (presence === 'detached') return { label: 'Left', tone: 'quiet' }
  if (!isAlive) return { label: 'Silent', tone: 'bad' }
  return presence === 'draining' ? { label: 'Draining', tone: 'warn' } : { label: 'Active', tone: 'good' }
}
