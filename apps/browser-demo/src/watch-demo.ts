import type { Durably, EventType } from '@coji/durably'
import { coalesce, type Coalesced } from '@coji/durably-react'
import type { DemoState } from './demo-state'
import { notify } from './notices'
import type { Observable } from './observable'
import { readShown } from './read-shown'

/** A read takes some 3 ms of the one connection that the jobs write through. */
const READ_EVERY_MS = 250
const AGAIN_MS = 2000

/** Nobody should see a run at work that has ended. */
const ENDINGS = ['run:complete', 'run:fail', 'run:timeout', 'run:cancel', 'run:delete'] as const

const CHANGES = [
  ...(['run:trigger', 'run:start', 'run:retry', 'run:suspend', 'run:park', 'run:unpark', 'run:release'] as const),
  ...(['run:recover', 'run:progress', 'worker:lease-lost'] as const),
] as const satisfies readonly EventType[]

const CHANGES_OF_STEPS = ['step:start', 'step:complete', 'step:fail', 'step:restart', 'log:write'] as const

export type Refresh = Coalesced

/** Reads again what an event says has changed: endings at once, the rest rarely enough to leave the database to the jobs. */
export function watchDemo(durably: Durably, state: Observable<DemoState>): Refresh {
  const refresh = coalesce(READ_EVERY_MS, async () => {
    try {
      await readShown(durably, state)
    } catch (error) {
      notify(state, error, 'The database could not be read')
      setTimeout(refresh.soon, AGAIN_MS)
    }
  })
  for (const type of ENDINGS) durably.on(type, refresh.now)
  for (const type of CHANGES) durably.on(type, refresh.soon)
  for (const type of CHANGES_OF_STEPS) {
    durably.on(type, ({ runId }) => {
      if (runId === state.get().selectedId) refresh.soon()
    })
  }
  return refresh
}
