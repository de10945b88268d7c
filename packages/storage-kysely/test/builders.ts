import type { Lease, NewRun, RunCommit, RunRecord, Storage, StepWrite } from '@coji/durably-core'

let count = 0

export function newId(): string {
  count += 1
  return `id-${String(count).padStart(6, '0')}`
}

export function newRun(change: Partial<NewRun> = {}): NewRun {
  return {
    id: newId(),
    tenant: '',
    jobName: 'job',
    jobVersion: null,
    payload: '{"a":1}',
    labels: {},
    idempotencyKey: null,
    onConflict: 'return',
    concurrencyKey: null,
    concurrencyLimit: 1,
    holdKeyWhileWaiting: false,
    priority: 0,
    start: { afterMs: 0 },
    timeoutMs: null,
    parentRunId: null,
    scheduleId: null,
    scheduledFor: null,
    events: [],
    ...change,
  }
}

export function newStep(change: Partial<StepWrite> = {}): StepWrite {
  const id = newId()
  return {
    id,
    name: `step-${id}`,
    index: 0,
    kind: 'run',
    status: 'completed',
    attempt: 1,
    output: '1',
    error: null,
    errorDetail: null,
    checkpoint: null,
    durationMs: 0,
    due: null,
    waitName: null,
    child: null,
    ...change,
  }
}

export function leaseOf(run: RunRecord): Lease {
  return { runId: run.id, epoch: run.leaseEpoch, token: run.claimToken ?? '', leaderEpoch: run.leaderEpoch }
}

export function newCommit(run: RunRecord, change: Partial<RunCommit> = {}): RunCommit {
  return {
    lease: leaseOf(run),
    commitNo: 1,
    leaseMs: 60_000,
    currentStepIndex: null,
    progress: null,
    steps: [],
    logs: [],
    events: [],
    consumedSignals: [],
    outcome: null,
    ...change,
  }
}

export const COMPLETE = { kind: 'complete', output: '"done"', events: [], eventsIfCancelled: [] } as const

/** Claims what is due, one run by default. */
export function claim(storage: Storage, limit = 1): Promise<readonly RunRecord[]> {
  const claimToken = crypto.randomUUID()
  return storage.claim({ workerId: 'worker', claimToken, jobs: ['job'], limit, leaseMs: 60_000, events: [] })
}

/** A run that is running. */
export async function startRun(storage: Storage, change: Partial<NewRun> = {}): Promise<RunRecord> {
  await storage.enqueue([newRun(change)])
  const [run] = await claim(storage)
  if (run === undefined) throw new Error('Nothing was claimed.')
  return run
}

export const RECOVER_ALL = {
  deadWorkerId: null,
  held: [],
  maxCrashes: 5,
  limit: 100,
  crashLimit: { error: 'crash limit', detail: { name: 'CrashLimitError' } },
  events: { pending: [], cancelled: [], failed: [] },
} as const
