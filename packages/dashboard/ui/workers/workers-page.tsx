import type { ServedLead, ServedWorker } from '@coji/durably-server/client'
import { useEffect } from 'react'
import { useViewer } from '../api'
import { formatMoment, plural } from '../format'
import { EmptyState } from '../parts/empty-state'
import { Trouble } from '../parts/trouble'
import { useWorkers } from './use-workers'
import { WorkerRow } from './worker-row'

/** Who is there, what they hold, and who leads. */
export function WorkersPage() {
  const { me } = useViewer()
  useEffect(() => {
    document.title = 'Workers · durably'
  }, [])
  if (me.workers) return <Workers />
  return (
    <EmptyState
      title="Workers are not shown here"
      text={
        <>
          They are shown to those who see the runs of all tenants, where the server was given a cluster:{' '}
          <code>{'createDurablyHandler(durably, { cluster })'}</code> takes what <code>createCluster()</code> made.
        </>
      }
    />
  )
}

function Workers() {
  const { value: seen, trouble } = useWorkers()
  if (seen === null) {
    return trouble === null ? <p className="is-late muted">Reading the workers …</p> : <Trouble error={trouble} />
  }
  if (seen.workers.length === 0) {
    return (
      <EmptyState
        title="No worker has told of itself yet"
        text={
          <>
            A process is shown from its <code>durably.start()</code> on, if it has called <code>createCluster()</code>.
          </>
        }
      />
    )
  }
  const there = seen.workers.filter(({ isAlive }) => isAlive)
  const gone = seen.workers.filter(({ isAlive }) => !isAlive)
  const listOf = (workers: readonly ServedWorker[], label: string) => (
    <ul className="entries" aria-label={label}>
      {workers.map((worker) => (
        <WorkerRow
          key={worker.workerId}
          worker={worker}
          isLeader={isLedBy(seen.leader, worker)}
          runs={seen.runs.get(worker.workerId) ?? []}
        />
      ))}
    </ul>
  )
  return (
    <>
      <h1>Workers</h1>
      <Trouble error={trouble} />
      <p className="muted">{leaderWords(seen.leader)}</p>
      {listOf(there, 'Workers')}
      {gone.length > 0 && (
        <details>
          <summary>{plural(gone.length, 'worker')} of the last day that left or fell silent</summary>
          {listOf(gone, 'Workers that are gone')}
        </details>
      )}
    </>
  )
}

/** A leader's name is that of its worker, and what makes it one of a kind. */
function isLedBy(leader: ServedLead | null, { workerId }: ServedWorker): boolean {
  return leader !== null && !leader.isOver && leader.workerId.startsWith(`${workerId} `)
}

function leaderWords(leader: ServedLead | null): string {
  if (leader === null) return 'Nobody has led yet. Schedules, messages and runs that are placed wait for a leader.'
  const { workerId, epoch, until, isOver } = leader
  const name = workerId.replace(/ [^ ]*$/, '')
  if (isOver) return `Nobody leads at the moment: the lead of ${name} was over at ${formatMoment(until)}.`
  return `${name} leads, in epoch ${epoch}, until ${formatMoment(until)} unless it renews that.`
}
