import type { Durably } from '@coji/durably'
import type { DemoState } from './demo-state'
import { formatSteps } from './format'
import { addNotice, titleOf } from './notices'
import type { Observable } from './observable'
import { shortId } from './run-status'

/** What a page meets that was frozen, or has another beside it. The worker tries again by itself. */
const MAY_PASS: ReadonlySet<string> = new Set(['STORAGE_UNAVAILABLE', 'STORAGE_BUSY', 'STORAGE_HELD'])
const PASSES_WITHIN_MS = 1500

/** Says aloud how runs begin and end, which steps were spared, and what trouble the worker meets. */
export function announceEvents(durably: Durably, state: Observable<DemoState>): void {
  const words = {
    'run:start': 'started',
    'run:complete': 'completed',
    'run:fail': 'failed',
    'run:timeout': 'timed out',
  } as const
  for (const type of Object.keys(words) as (keyof typeof words)[]) {
    durably.on(type, ({ jobName, runId }) => {
      state.set({ announcement: `${jobName} ${shortId(runId)} ${words[type]}` })
    })
  }
  durably.on('run:cancel', ({ jobName, runId, requested }) => {
    state.set({ announcement: `${jobName} ${shortId(runId)} ${requested ? 'is being cancelled' : 'cancelled'}` })
  })
  durably.on('worker:error', ({ code, error, during }) => {
    const tell = () => addNotice(state, { code, title: titleOf(code, `Trouble during ${during}`), text: error })
    if (!MAY_PASS.has(code)) return tell()
    setTimeout(() => {
      if (durably.health().trouble !== null) tell()
    }, PASSES_WITHIN_MS)
  })
  durably.on('run:start', ({ runId, jobName, timestamp }) => {
    void countSkipped(durably, runId, timestamp).then((skipped) => {
      if (skipped === 0) return
      state.set({ announcement: `${jobName} ${shortId(runId)} resumed: ${formatSteps(skipped)} skipped` })
    })
  })
}

/** What an execution finds done when it begins does not run again. */
async function countSkipped(durably: Durably, runId: string, since: string): Promise<number> {
  try {
    const steps = await durably.getSteps(runId)
    return steps.filter(({ status, completedAt }) => status === 'completed' && (completedAt ?? '') < since).length
  } catch {
    // The announcement is a courtesy; the detail of the run shows the same, and reports that the database is away.
    return 0
  }
}
