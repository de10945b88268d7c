import type { JobLimits, Lease, LimitedClaim, NewRun, RunCommit, RunRecord, Storage } from '@coji/durably-core/storage'
import { newRun, runCommit } from '@coji/durably-core/testing'
import type { KyselyStorage } from '../src'

export { newRun, stepWrite as newStep } from '@coji/durably-core/testing'

export function leaseOf(run: RunRecord): Lease {
  return { runId: run.id, epoch: run.leaseEpoch, token: run.claimToken ?? '', leaderEpoch: run.leaderEpoch }
}

/** The first commit of the run's holder. */
export function newCommit(run: RunRecord, change: Partial<RunCommit> = {}): RunCommit {
  return runCommit({ lease: leaseOf(run), commitNo: 1 }, change)
}

export const COMPLETE = { kind: 'complete', output: '"done"', events: [], eventsIfCancelled: [] } as const

/** Claims what is due, one run by default. */
export function claim(storage: Storage, limit = 1): Promise<readonly RunRecord[]> {
  const claimToken = crypto.randomUUID()
  return storage.claim({
    ...{ workerId: 'worker', claimToken, jobs: ['job'], limit, leaseMs: 60_000 },
    ...{ holdsSuspect: false, events: [] },
  })
}

/** Claims what is due of the job under limits, as much as they leave room for. */
export function claimWithin(storage: KyselyStorage, limits: Partial<JobLimits>, limit = 100): Promise<LimitedClaim> {
  const claimToken = crypto.randomUUID()
  return storage.limits.claim(
    { workerId: 'worker', claimToken, limit, leaseMs: 60_000, holdsSuspect: false, events: [] },
    { jobName: 'job', concurrency: null, rateLimit: null, ...limits },
  )
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
  jitter: 0.5,
  limit: 100,
  crashLimit: { error: 'crash limit', detail: { name: 'CrashLimitError' } },
  events: { pending: [], cancelled: [], failed: [] },
} as const
