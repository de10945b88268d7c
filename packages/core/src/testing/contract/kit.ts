import {
  type ArchivingStorage,
  type AuditStorage,
  type ClaimParams,
  type ClusterStorage,
  type CommandAnswer,
  type EventStorage,
  type JobLimits,
  type LimitedClaim,
  type LimitStorage,
  type LogStorage,
  type NewRun,
  type PlacementStorage,
  type RecoverParams,
  type RunCommand,
  type RunRecord,
  type SettingsStorage,
  type SignalStorage,
  type Storage,
  SUSPECT_FROM,
  type TransactionStorage,
  type WatchStorage,
} from '../../port'
import { assert, assertEqual, assertMatches, itemAt } from '../assert'
import { LEASE_MS, newId, newRun } from './builders'
import type { ContractStorage } from './contract-case'
import { Holder } from './holder'

type CommandKind = RunCommand['kind']

/** The storage under test with the few things that most cases do to it. */
export class Kit {
  storage: Storage
  readonly #opened: ContractStorage

  constructor(opened: ContractStorage) {
    this.#opened = opened
    this.storage = opened.storage
  }

  /** As after a kill of the process: a fresh storage on the same data. */
  async reopen(): Promise<void> {
    this.storage = await this.#opened.reopen()
  }

  async enqueue(over: Partial<NewRun> = {}): Promise<RunRecord> {
    const [answer] = await this.storage.enqueue([newRun(over)])
    assert(answer?.created === true, 'enqueue: the run should have been created')
    return answer.run
  }

  claim(over: Partial<ClaimParams> = {}): Promise<readonly RunRecord[]> {
    return this.storage.claim({
      ...{ workerId: 'worker-1', claimToken: newId(), jobs: ['job'], limit: 1, leaseMs: LEASE_MS },
      ...{ holdsSuspect: false, events: [], ...over },
    })
  }

  async claimedIds(over: Partial<ClaimParams> = {}): Promise<string[]> {
    return (await this.claim({ limit: 100, ...over })).map(({ id }) => id)
  }

  /** Claims runs of the job `job` under limits. */
  claimWithin(limits: Partial<JobLimits>, over: Partial<ClaimParams> = {}): Promise<LimitedClaim> {
    return this.limits.claim(
      {
        ...{
          workerId: 'worker-1',
          claimToken: newId(),
          limit: 100,
          leaseMs: LEASE_MS,
          holdsSuspect: false,
          events: [],
        },
        ...over,
      },
      { jobName: 'job', concurrency: null, rateLimit: null, ...limits },
    )
  }

  /** Claims the one run that is due. */
  async hold(over: Partial<ClaimParams> = {}): Promise<Holder> {
    const claimed = await this.claim(over)
    assertEqual(claimed.length, 1, 'claim: number of runs claimed')
    return new Holder(this, itemAt(claimed, 0, 'claimed runs'))
  }

  /** A run of a job of its own, claimed. */
  async start(over: Partial<NewRun> = {}, claimOver: Partial<ClaimParams> = {}): Promise<Holder> {
    const run = await this.enqueue({ jobName: `job-${newId()}`, ...over })
    const holder = await this.hold({ jobs: [run.jobName], ...claimOver })
    assertEqual(holder.run.id, run.id, 'claim: id of the claimed run')
    return holder
  }

  /** A run whose lease has run out already. */
  startExpired(over: Partial<NewRun> = {}, claimOver: Partial<ClaimParams> = {}): Promise<Holder> {
    return this.start(over, { leaseMs: -1000, ...claimOver })
  }

  /** Runs that lost their worker so often that they are suspects, due in their place. */
  async suspects(count: number, over: Partial<NewRun> = {}): Promise<readonly string[]> {
    const jobName = over.jobName ?? 'job'
    const runs = Array.from({ length: count }, () => newRun({ ...over, jobName }))
    await this.storage.enqueue(runs)
    for (let loss = 1; loss <= SUSPECT_FROM; loss++) {
      await this.claim({ workerId: 'lost', jobs: [jobName], limit: count, leaseMs: -1000 })
      await this.recover({ maxCrashes: 100 })
    }
    // Back from their pause to their place; one after the other, for a storage may be slow at each.
    for (const { id } of runs) {
      await this.order('park', id)
      const run = await this.order('unpark', id)
      assertMatches(run, { status: 'pending', crashCount: SUSPECT_FROM }, 'a run that lost its worker')
    }
    return runs.map(({ id }) => id)
  }

  async run(runId: string): Promise<RunRecord> {
    const run = await this.storage.getRun(runId)
    assert(run !== null, `getRun: run ${runId} should be there`)
    return run
  }

  recover(over: Partial<RecoverParams> = {}): Promise<readonly RunRecord[]> {
    return this.storage.recover({ ...RECOVERY, ...over })
  }

  command(kind: CommandKind, runId: string, over: { readonly tenant?: string } = {}): Promise<CommandAnswer> {
    return this.storage.command({ ...commandOf(kind, runId), ...over })
  }

  /** A command that must be obeyed. */
  async order(kind: CommandKind, runId: string): Promise<RunRecord> {
    const answer = await this.command(kind, runId)
    assert(answer.applied, `command ${kind}: should be applied, but: ${answer.applied ? '' : answer.reason}`)
    return answer.run
  }

  /** All there is to see of a run, without what changes by time alone. */
  async snapshot(runId: string): Promise<object> {
    const steps = await this.storage.getSteps(runId)
    return {
      run: await this.storage.getRun(runId),
      steps: steps.map((step) => ({ ...step, isDue: null })),
      events: (await this.storage.events?.getEvents(runId, {})) ?? null,
      logs: (await this.storage.logs?.getLogs(runId, {})) ?? null,
      signals: (await this.storage.signals?.getUnread(runId)) ?? null,
    }
  }

  get events(): EventStorage {
    return present(this.storage.events, 'events')
  }

  get logs(): LogStorage {
    return present(this.storage.logs, 'logs')
  }

  get signals(): SignalStorage {
    return present(this.storage.signals, 'signals')
  }

  get limits(): LimitStorage {
    return present(this.storage.limits, 'limits')
  }

  get audit(): AuditStorage {
    return present(this.storage.audit, 'audit')
  }

  get settings(): SettingsStorage {
    return present(this.storage.settings, 'settings')
  }

  get archiving(): ArchivingStorage {
    return present(this.storage.archiving, 'archiving')
  }

  get cluster(): ClusterStorage {
    return present(this.storage.cluster, 'cluster')
  }

  get placement(): PlacementStorage {
    return this.cluster.placement
  }

  get transaction(): TransactionStorage {
    return present(this.storage.transaction, 'transaction')
  }

  get watch(): WatchStorage {
    return present(this.storage.watch, 'watch')
  }
}

const RECOVERY: RecoverParams = {
  deadWorkerId: null,
  held: [],
  maxCrashes: 5,
  jitter: 0.5,
  limit: 100,
  crashLimit: { error: 'crashed too often', detail: { name: 'CrashLimit', code: 'CRASH_LIMIT' } },
  events: { pending: [], cancelled: [], failed: [] },
}

export function commandOf(kind: CommandKind, runId: string): RunCommand {
  switch (kind) {
    case 'cancel':
      return { kind, runId, events: { cancelled: [], requested: [] } }
    case 'park':
      return { kind, runId, reason: 'code changed', events: [] }
    case 'failParked':
      return { kind, runId, error: 'given up', detail: { name: 'GivenUp' }, events: [] }
    case 'remove':
      return { kind, runId }
    default:
      return { kind, runId, events: [] }
  }
}

function present<T>(group: T | undefined, name: string): T {
  assert(group !== undefined, `storage.${name}: is missing, although the capability is claimed`)
  return group
}
