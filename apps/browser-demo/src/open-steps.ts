import type { Durably } from '@coji/durably'
import type { DemoState, OpenStep } from './demo-state'
import type { Observable } from './observable'

/** Keeps in mind which steps run now, from the events of this tab and of the one that executes. */
export function trackOpenSteps(durably: Durably, state: Observable<DemoState>): void {
  const change = (runId: string, steps: readonly OpenStep[]) => {
    const openSteps = new Map(state.get().openSteps)
    if (steps.length === 0) openSteps.delete(runId)
    else openSteps.set(runId, steps)
    state.set({ openSteps })
  }
  const without = (runId: string, name: string) =>
    (state.get().openSteps.get(runId) ?? []).filter((step) => step.name !== name)

  durably.on('step:start', ({ runId, stepName, timestamp }) => {
    change(runId, [...without(runId, stepName), { name: stepName, startedAt: timestamp }])
  })
  for (const type of ['step:complete', 'step:fail'] as const) {
    durably.on(type, ({ runId, stepName }) => change(runId, without(runId, stepName)))
  }
  const ending = ['run:start', 'run:complete', 'run:fail', 'run:timeout', 'run:release', 'run:recover'] as const
  for (const type of [...ending, 'run:retry', 'run:delete', 'worker:lease-lost'] as const) {
    durably.on(type, ({ runId }) => change(runId, []))
  }
}
