import type { MemoryStorage } from '@coji/durably-core/memory'
import { runCommit } from '@coji/durably-core/testing'
import type { Lease, RunRecord } from '@coji/durably-core/storage'
import { pick, type Random } from './random'

const HOUR_MS = 3_600_000
const COMPLETE = { kind: 'complete', output: '"forged"', events: [], eventsIfCancelled: [] } as const
const RECOVERY = {
  ...{ deadWorkerId: 'nobody', held: [], maxCrashes: 100, jitter: 0.5, limit: 100 },
  crashLimit: { error: 'forged', detail: { name: 'Forged' } },
  events: { pending: [], cancelled: [], failed: [] },
} as const

/** Writes as a holder would that has lost its lease, and recoveries in a hurry. Nothing of it may be taken. */
export class Forger {
  readonly #storage: MemoryStorage
  readonly #random: Random
  /** Those that were held once. */
  readonly #leases = new Map<string, Lease>()

  constructor(storage: MemoryStorage, random: Random) {
    this.#storage = storage
    this.#random = random
  }

  async strike(): Promise<void> {
    const runs = await this.#storage.getRuns({})
    const running = runs.filter(({ status }) => status === 'running')
    await this.#writeUnderForged(pick(this.#random, running))
    const left = runs.filter(({ id, status }) => status !== 'running' && this.#leases.has(id))
    await this.#writeAfterwards(pick(this.#random, left))
    await this.#recover(running)
    for (const run of running) this.#leases.set(run.id, leaseOf(run))
  }

  /** Each is as it has to be but for one thing. */
  async #writeUnderForged(run: RunRecord | undefined): Promise<void> {
    if (run === undefined) return
    const lease = leaseOf(run)
    const forged: readonly Lease[] = [
      { ...lease, epoch: lease.epoch - 1 },
      { ...lease, token: 'forged' },
      { ...lease, leaderEpoch: (lease.leaderEpoch ?? 0) + 1 },
    ]
    for (const each of forged) await this.#write(each, run.commitNo + 1)
    await this.#commit(lease, run.commitNo + 2)
  }

  async #writeAfterwards(run: RunRecord | undefined): Promise<void> {
    const lease = run === undefined ? undefined : this.#leases.get(run.id)
    if (run !== undefined && lease !== undefined) await this.#write(lease, run.commitNo + 1)
  }

  async #write(lease: Lease, commitNo: number): Promise<void> {
    await this.#storage.renew([lease], HOUR_MS)
    await this.#commit(lease, commitNo)
  }

  async #commit(lease: Lease, commitNo: number): Promise<void> {
    await this.#storage.commit([runCommit({ lease, commitNo })])
    await this.#storage.commit([runCommit({ lease, commitNo }, { outcome: COMPLETE })])
  }

  async #recover(running: readonly RunRecord[]): Promise<void> {
    await this.#storage.recover(RECOVERY)
    const owner = pick(this.#random, running)?.ownerId ?? null
    if (owner !== null) {
      await this.#storage.recover({ ...RECOVERY, deadWorkerId: owner, held: running.map(({ id }) => id) })
    }
  }
}

function leaseOf({ id: runId, leaseEpoch: epoch, claimToken, leaderEpoch }: RunRecord): Lease {
  return { runId, epoch, token: claimToken ?? '', leaderEpoch }
}
