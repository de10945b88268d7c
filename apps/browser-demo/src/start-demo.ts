import { announceEvents } from './announce'
import { createDemoActions, type DemoActions } from './demo-actions'
import { INITIAL_STATE, type DemoState } from './demo-state'
import { notify } from './notices'
import { createObservable, type Observable } from './observable'
import { openDemo } from './open-demo'
import { trackOpenSteps } from './open-steps'
import { sweep } from './sweep'
import { watchDemo } from './watch-demo'

const HEALTH_EVERY_MS = 500
/** Who is to lead hears of it sooner than that. */
const FOLLOWS_AFTER_MS = 400

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
  trackOpenSteps(durably, state)
  announceEvents(durably, state)
  durably.start()
  setTimeout(() => {
    if (state.get().role === 'unknown') state.set({ role: 'follower' })
  }, FOLLOWS_AFTER_MS)
  Object.assign(window, { durably, jobs })

  const followHash = () => {
    const selectedId = /^#run=(\w+)$/.exec(location.hash)?.[1] ?? null
    state.set({ selectedId, detail: null, isMissing: false })
    refresh.detail()
  }
  const lookAtWorker = () => {
    const { worker } = durably.health()
    if (worker !== state.get().worker) state.set({ worker })
  }
  addEventListener('hashchange', followHash)
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'hidden') return
    refresh.list()
    refresh.detail()
  })
  setInterval(lookAtWorker, HEALTH_EVERY_MS)
  followHash()
  lookAtWorker()
  refresh.list()
  void sweep(durably, files).catch((error: unknown) => notify(state, error, 'Old files were not removed'))
  return { state, isInMemory, actions: createDemoActions({ demo, state, refresh }) }
}
