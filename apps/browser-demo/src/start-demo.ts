import { announceEvents } from './announce'
import { createDemoActions, type DemoActions } from './demo-actions'
import { INITIAL_STATE, type DemoState } from './demo-state'
import { trackLiveSteps } from './live-steps'
import { notify } from './notices'
import { createObservable, type Observable } from './observable'
import { openDemo } from './open-demo'
import { sweep } from './sweep'
import { watchDemo } from './watch-demo'
import { watchWorker } from './watch-worker'

/** The running demo, as the page shows it. */
export interface StartedDemo {
  readonly state: Observable<DemoState>
  readonly actions: DemoActions
  readonly isInMemory: boolean
}

/** Opens the database, follows what happens, and starts the worker. Rejects when there is no database to be had. */
export async function startDemo(allowMemory: boolean): Promise<StartedDemo> {
  const state = createObservable<DemoState>(INITIAL_STATE)
  const onLeadership = (isLeader: boolean) => state.set({ role: isLeader ? 'leader' : 'follower' })
  const demo = await openDemo({ allowMemory, onLeadership })
  const { durably, files, isInMemory, jobs } = demo
  const refresh = watchDemo(durably, state)
  trackLiveSteps(durably, state)
  announceEvents(durably, state)
  durably.start()
  watchWorker(durably, state)
  Object.assign(window, { durably, jobs })

  const followHash = () => {
    const selectedId = /^#run=(\w+)$/.exec(location.hash)?.[1] ?? null
    state.set({ selectedId, history: null, isMissing: false })
    refresh.now()
  }
  addEventListener('hashchange', followHash)
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') refresh.now()
  })
  followHash()
  void sweep(durably, files).catch((error: unknown) => notify(state, error, 'Old files were not removed'))
  return { state, isInMemory, actions: createDemoActions({ demo, state, refresh }) }
}
