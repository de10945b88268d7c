import type { Durably } from '@coji/durably'
import type { DemoState, RunDetail } from './demo-state'
import type { Observable } from './observable'

/** Reads the selected run; of what only grows, what is not there yet. */
export async function readDetail(durably: Durably, state: Observable<DemoState>): Promise<void> {
  const { selectedId: id, detail: before } = state.get()
  if (id === null) return
  const known = before?.run.id === id ? before : null
  const [run, steps, events, logs] = await Promise.all([
    durably.getRun(id),
    durably.getSteps(id),
    durably.getEvents(id, after(known?.events.at(-1)?.seq)),
    durably.getLogs(id, after(known?.logs.at(-1)?.id)),
  ])
  if (state.get().selectedId !== id) return
  if (run === null) state.set({ detail: null, isMissing: true })
  else state.set({ detail: grown(known, { run, steps, events, logs }), isMissing: false })
}

function after<T>(cursor: T | undefined): { readonly after?: T } {
  return cursor === undefined ? {} : { after: cursor }
}

function grown(known: RunDetail | null, now: RunDetail): RunDetail {
  if (known === null) return now
  return { ...now, events: [...known.events, ...now.events], logs: [...known.logs, ...now.logs] }
}
