import type { Durably } from '@coji/durably'
import type { DemoState } from './demo-state'
import type { Observable } from './observable'
import { tabStateOf } from './tab-state'

const SETTLED_EVERY_MS = 500
const CHANGING_EVERY_MS = 30
/** Who is to lead hears of it sooner than that. */
const FOLLOWS_AFTER_MS = 400

/** Looks at the worker: often while it is about to change. */
export function watchWorker(durably: Durably, state: Observable<DemoState>): void {
  const look = () => {
    const { worker } = durably.health()
    if (worker !== state.get().worker) state.set({ worker })
    const isChanging = ['prepares', 'stops'].includes(tabStateOf(state.get()))
    setTimeout(look, isChanging ? CHANGING_EVERY_MS : SETTLED_EVERY_MS)
  }
  setTimeout(() => {
    if (state.get().role === 'unknown') state.set({ role: 'follower' })
  }, FOLLOWS_AFTER_MS)
  look()
}
