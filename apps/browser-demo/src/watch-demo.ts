import type { Durably, EventType } from '@coji/durably'
import { coalesce } from './coalesce'
import type { DemoState } from './demo-state'
import { notify } from './notices'
import type { Observable } from './observable'
import { readDetail } from './read-detail'

/** A read takes about 2 ms of the one connection that the jobs write through. */
const LIST_EVERY_MS = 300
const DETAIL_EVERY_MS = 250
const AGAIN_MS = 2000

const OF_RUNS = [
  ...(['run:trigger', 'run:start', 'run:complete', 'run:fail', 'run:timeout', 'run:cancel', 'run:retry'] as const),
  ...(['run:suspend', 'run:park', 'run:unpark', 'run:release', 'run:recover', 'run:progress', 'run:delete'] as const),
  'worker:lease-lost',
] as const satisfies readonly EventType[]

const OF_STEPS = ['step:start', 'step:complete', 'step:fail', 'step:restart', 'log:write'] as const

export interface Refresh {
  readonly list: () => void
  readonly detail: () => void
}

/** Reads again what an event says has changed: rarely enough to leave the database to the jobs. */
export function watchDemo(durably: Durably, state: Observable<DemoState>): Refresh {
  const reading = (read: () => Promise<void>, again: () => void) => async () => {
    try {
      await read()
    } catch (error) {
      notify(state, error, 'The database could not be read')
      setTimeout(again, AGAIN_MS)
    }
  }
  const list: () => void = coalesce(
    LIST_EVERY_MS,
    reading(
      () => readList(durably, state),
      () => list(),
    ),
  )
  const detail: () => void = coalesce(
    DETAIL_EVERY_MS,
    reading(
      () => readDetail(durably, state),
      () => detail(),
    ),
  )
  const detailOf = (runId: string) => {
    if (runId === state.get().selectedId) detail()
  }
  for (const type of OF_RUNS) {
    durably.on(type, ({ runId }) => {
      list()
      detailOf(runId)
    })
  }
  for (const type of OF_STEPS) durably.on(type, ({ runId }) => detailOf(runId))
  return { list, detail }
}

async function readList(durably: Durably, state: Observable<DemoState>): Promise<void> {
  const [runs, counts] = await Promise.all([durably.getRuns({ limit: state.get().limit }), durably.counts()])
  state.set({ runs, counts, isLoaded: true })
}
