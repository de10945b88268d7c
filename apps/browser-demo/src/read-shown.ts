import type { Durably, Run } from '@coji/durably'
import type { DemoState, RunHistory } from './demo-state'
import { afterRead } from './live-steps'
import type { Observable } from './observable'

/** Reads the list and the selected run, and puts both in place at once. */
export async function readShown(durably: Durably, state: Observable<DemoState>): Promise<void> {
  const { limit, selectedId } = state.get()
  const [list, counts, found] = await Promise.all([
    durably.getRuns({ limit }),
    durably.counts(),
    selectedId === null ? null : durably.getRun(selectedId),
  ])
  const runs = new Map(list.map((run) => [run.id, run]))
  const selected = selectedId === null ? null : (runs.get(selectedId) ?? found)
  if (selected !== null) runs.set(selected.id, selected)
  // After the run: what it says has happened is there by now.
  const history = selected === null ? null : await readHistory(durably, selected, state.get().history)
  const shown = { runs, listed: list.map(({ id }) => id), counts, isLoaded: true }
  if (state.get().selectedId !== selectedId) return state.set(shown)
  if (selected === null || history === null) {
    return state.set({ ...shown, history: null, isMissing: selectedId !== null })
  }
  const liveSteps = afterRead(state.get().liveSteps, selected, history.steps)
  state.set({ ...shown, history, liveSteps, isMissing: false })
}

/** Of what only grows, what is not known yet. */
async function readHistory(durably: Durably, run: Run, before: RunHistory | null): Promise<RunHistory> {
  const known = before?.runId === run.id ? before : { events: [], logs: [] }
  const [steps, events, logs] = await Promise.all([
    durably.getSteps(run.id),
    durably.getEvents(run.id, after(known.events.at(-1)?.seq)),
    durably.getLogs(run.id, after(known.logs.at(-1)?.id)),
  ])
  // What has happened since the run was read comes with the next look at it.
  const happened = events.filter(({ seq }) => seq <= run.lastEventSequence)
  return { runId: run.id, steps, events: [...known.events, ...happened], logs: [...known.logs, ...logs] }
}

function after<T>(cursor: T | undefined): { readonly after?: T } {
  return cursor === undefined ? {} : { after: cursor }
}
