import { ask, type Engine, recorded } from '../engine'
import { type EventInput, lostTooOften } from '../job'
import type { RecoverParams, RunRecord } from '../port'

const BATCH = 100

export interface RecoverRunsParams {
  readonly engine: Engine
  readonly deadWorkerId: string | null
  /** False: it left on purpose. */
  readonly isCrash: boolean
  readonly held: readonly string[]
}

/** Takes runs away from workers that are gone, and says so. Resolves with those that can run again. */
export async function recoverRuns(wanted: RecoverRunsParams): Promise<readonly RunRecord[]> {
  const { engine } = wanted
  const recovered: RunRecord[] = []
  for (;;) {
    const params = recoverParams(wanted)
    const batch = await ask(engine, (storage) => storage.recover(params))
    for (const run of batch) announce(wanted, run)
    recovered.push(...batch.filter((run) => run.status === 'pending'))
    if (batch.length < BATCH) return recovered
    await engine.breathe()
  }
}

function recoverParams({ engine, deadWorkerId, isCrash, held }: RecoverRunsParams): RecoverParams {
  const { maxCrashes } = engine.options
  const error = lostTooOften(maxCrashes)
  const nobody = { runId: '', jobName: '' }
  return {
    deadWorkerId,
    isCrash,
    held,
    maxCrashes,
    jitter: engine.environment.random(),
    limit: BATCH,
    failsOnly: [...engine.jobs.values()].flatMap((job) => (job.onFailure === null ? [job.name] : [])),
    crashLimit: { error, detail: { name: 'CrashLimitError', code: 'crash_limit' } },
    events: {
      pending: recorded(engine, { type: 'run:recover', ...nobody, crashed: isCrash }),
      cancelled: recorded(engine, { type: 'run:cancel', ...nobody, requested: false }),
      failed: recorded(engine, { type: 'run:fail', ...nobody, error, failedStepName: null }),
    },
  }
}

function announce({ engine, isCrash }: RecoverRunsParams, run: RunRecord): void {
  const event = eventOf(run, isCrash)
  engine.events.emit(event, engine.plugins.recordsEvent(event.type) ? run.lastEventSequence : undefined)
}

function eventOf(run: RunRecord, isCrash: boolean): EventInput {
  const ids = { runId: run.id, jobName: run.jobName }
  if (run.status === 'failed') return { type: 'run:fail', ...ids, error: run.error ?? '', failedStepName: null }
  if (run.status === 'cancelled') return { type: 'run:cancel', ...ids, requested: false }
  return { type: 'run:recover', ...ids, crashed: isCrash }
}
