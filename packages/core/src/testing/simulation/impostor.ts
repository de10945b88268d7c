import type { Lease, Outcome, RunCommit, Storage } from '../../port'
import type { Model } from './model'
import type { Wire } from './wire'
import type { Witness } from './witness'
import type { World } from './world'

export interface ImpostorParams {
  readonly world: World
  readonly wire: Wire
  readonly inner: Storage
  readonly model: Model
  readonly witness: Witness
}

const LEAVING = { events: [], eventsIfCancelled: [] } as const
const FAILURE = { error: 'forged', detail: { name: 'Error' } } as const

const OUTCOMES: readonly [Outcome | null, ...(Outcome | null)[]] = [
  null,
  { kind: 'complete', output: '"forged"', ...LEAVING },
  { kind: 'fail', ...FAILURE, ...LEAVING },
  { kind: 'timeOut', ...FAILURE, ...LEAVING },
  { kind: 'cancelled', ...LEAVING },
  { kind: 'release', ...LEAVING },
  { kind: 'retryLater', delayMs: 0, ...FAILURE, ...LEAVING },
  { kind: 'suspend', steps: ['forged'], wakesSeen: 0, wakesWanted: 1, restMs: 0, ...LEAVING },
  { kind: 'park', reason: 'forged', ...LEAVING },
]

/** Writes as a holder would that was frozen for a year or restored from a backup. Nothing of it may be taken. */
export function createImpostor({ world, wire, inner, model, witness }: ImpostorParams) {
  const { random } = world

  /** A lease that was given once, or a forgery of it, and a number that the commit must not have. */
  function forge(): { readonly lease: Lease; readonly commitNo: number } | null {
    const lease = random.pickAny(witness.leases)
    const run = lease === undefined ? undefined : model.runs.get(lease.runId)
    if (lease === undefined || run === undefined) return null
    const next = run.commitNo + 1
    if (model.holds(lease) === null) return { lease, commitNo: next }
    return random.pick([
      { lease: { ...lease, token: 'forged' }, commitNo: next },
      { lease: { ...lease, epoch: lease.epoch + random.pick([-1, 1]) }, commitNo: next },
      { lease, commitNo: next + random.between(1, 2) },
    ])
  }

  async function commit(): Promise<void> {
    const forged = forge()
    if (forged === null) return
    const one: RunCommit = {
      ...forged,
      hasProgressed: false,
      leaseMs: 60_000,
      currentStepIndex: 99,
      progress: { current: 99 },
      steps: [],
      children: [],
      logs: [{ id: 'forged', stepName: null, level: 'info', message: 'forged', data: null, timestamp: '' }],
      events: [{ type: 'forged', payload: '{}' }],
      consumedSignals: [],
      outcome: random.pick(OUTCOMES),
    }
    await wire.perform({
      name: `forged ${one.outcome?.kind ?? 'commit'} ${one.lease.runId}/${one.lease.epoch}#${one.commitNo}`,
      stakes: () => [],
      perform: () => inner.commit([one]),
      check: (answers) => model.committed([one], answers),
    })
  }

  async function renew(): Promise<void> {
    const lease = forge()?.lease
    if (lease === undefined || model.holds(lease) !== null) return
    await wire.perform({
      name: `forged renewal ${lease.runId}/${lease.epoch}`,
      stakes: () => [],
      perform: () => inner.renew([lease], 60_000),
      check: (answers) => model.renewed([lease], 60_000, answers),
    })
  }

  return { strike: () => (random.chance(0.75) ? commit() : renew()) }
}
