import { useRead } from '@coji/durably-react'
import type { SchedulePage, ServedSchedule } from '@coji/durably-server/client'
import { useEffect, useState } from 'react'
import { type DashboardApi, useViewer } from '../api'
import { EmptyState } from '../parts/empty-state'
import { Trouble } from '../parts/trouble'
import { ScheduleRow } from './schedule-row'

const PAGE_SIZE = 100

export function SchedulesPage() {
  const { api, me } = useViewer()
  const [pages, setPages] = useState(1)
  /** Nobody tells of schedules that change: who changed one looks again. */
  const [changes, setChanges] = useState(0)
  const { value, trouble } = useRead(`schedules ${pages} ${changes}`, () => readPages(api, pages))
  const [shown, setShown] = useState<SchedulePage | null>(null)
  useEffect(() => {
    document.title = 'Schedules · durably'
  }, [])
  useEffect(() => {
    if (value !== null) setShown(value)
  }, [value])
  if (!me.schedules) {
    return (
      <EmptyState
        title="Schedules are not shown here"
        text={
          <>
            The server was given none: <code>{'createDurablyHandler(durably, { schedules })'}</code> takes what{' '}
            <code>createScheduler()</code> made.
          </>
        }
      />
    )
  }
  if (shown?.schedules.length === 0) {
    return <EmptyState title="There are no schedules yet" text="What the code defines shows up when it has started." />
  }
  return (
    <>
      <h1>Schedules</h1>
      <Trouble error={trouble} />
      {shown === null && <p className="is-late muted">Reading the schedules …</p>}
      <ul className="entries" aria-label="Schedules">
        {shown?.schedules.map((schedule) => (
          <ScheduleRow key={keyOf(schedule)} schedule={schedule} onChange={() => setChanges((count) => count + 1)} />
        ))}
      </ul>
      {(shown?.next ?? null) !== null && (
        <button type="button" className="show-more" onClick={() => setPages(pages + 1)}>
          Show more
        </button>
      )}
    </>
  )
}

function keyOf({ tenant, name }: ServedSchedule): string {
  return JSON.stringify([tenant, name])
}

async function readPages(api: DashboardApi, pages: number): Promise<SchedulePage> {
  const schedules: ServedSchedule[] = []
  let cursor: string | undefined
  for (let page = 0; page < pages; page++) {
    const read = await api.schedules({ limit: PAGE_SIZE, cursor })
    schedules.push(...read.schedules)
    if (read.next === null) return { schedules, next: null }
    cursor = read.next
  }
  return { schedules, next: cursor ?? null }
}
