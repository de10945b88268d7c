import type { Durably, Run, Step } from '@coji/durably'
import type { DemoState, LiveStep } from './demo-state'
import type { Observable } from './observable'

type LiveSteps = DemoState['liveSteps']

/** They end an execution, and with it the bodies that it had begun. */
const ENDS_OF_EXECUTIONS = [
  ...(['run:start', 'run:suspend', 'run:park', 'run:release', 'run:recover', 'run:retry'] as const),
  ...(['run:complete', 'run:fail', 'run:timeout'] as const),
] as const

/** Keeps in mind which steps run and have just ended, from the events of this tab and of the one that executes. */
export function trackLiveSteps(durably: Durably, state: Observable<DemoState>): void {
  const change = (runId: string, how: (steps: readonly LiveStep[]) => readonly LiveStep[]) => {
    const { liveSteps, selectedId } = state.get()
    const before = liveSteps.get(runId) ?? []
    const steps = how(before)
    if (steps.length === 0 && before.length === 0) return
    // Of a run that nobody looks at the database will be read as a whole.
    const kept = runId === selectedId ? steps : steps.filter(({ untilSeq }) => untilSeq === null)
    state.set({ liveSteps: withSteps(liveSteps, runId, kept) })
  }
  durably.on('step:start', ({ runId, stepName, timestamp }) => {
    const begun: LiveStep = { name: stepName, startedAt: timestamp, end: null, untilSeq: null }
    change(runId, (steps) => [...steps.filter((step) => !isOpen(step, stepName)), begun])
  })
  durably.on('step:complete', ({ runId, stepName, duration, timestamp, seq = 0 }) => {
    const end = { kind: 'completed', at: timestamp, durationMs: duration } as const
    change(runId, (steps) => steps.map((step) => (isOpen(step, stepName) ? { ...step, end, untilSeq: seq } : step)))
  })
  durably.on('step:fail', ({ runId, stepName, timestamp, seq = 0 }) => {
    const failed = (step: LiveStep): LiveStep => {
      const durationMs = Math.max(0, Date.parse(timestamp) - Date.parse(step.startedAt))
      return { ...step, end: { kind: 'failed', at: timestamp, durationMs }, untilSeq: seq }
    }
    change(runId, (steps) => steps.map((step) => (isOpen(step, stepName) ? failed(step) : step)))
  })
  for (const type of ENDS_OF_EXECUTIONS) {
    durably.on(type, ({ runId, seq = 0 }) => {
      change(runId, (steps) => steps.map((step) => (step.untilSeq === null ? { ...step, untilSeq: seq } : step)))
    })
  }
  durably.on('run:delete', ({ runId }) => change(runId, () => []))
}

function isOpen({ name, end }: LiveStep, stepName: string): boolean {
  return name === stepName && end === null
}

function withSteps(liveSteps: LiveSteps, runId: string, steps: readonly LiveStep[]): LiveSteps {
  const changed = new Map(liveSteps)
  if (steps.length === 0) changed.delete(runId)
  else changed.set(runId, steps)
  return changed
}

/** What is still needed of the live steps, now that the database has been read. */
export function afterRead(liveSteps: LiveSteps, run: Run, steps: readonly Step[]): LiveSteps {
  const stored = new Set(steps.flatMap(({ name, status }) => (status === 'completed' ? [name] : [])))
  const isNeeded = ({ name, untilSeq }: LiveStep): boolean => {
    if (untilSeq !== null) return untilSeq > run.lastEventSequence
    return run.finishedAt === null && !stored.has(name)
  }
  return withSteps(liveSteps, run.id, (liveSteps.get(run.id) ?? []).filter(isNeeded))
}
