import type { TransitionName } from '../../port'

/** What can go wrong around one call of the storage. */
export const FAULTS = [
  'throwBefore',
  'throwAfter',
  'delayPastLease',
  'workerDies',
  'workerPauses',
  'clockJump',
  'duplicateWakeUp',
] as const

/** A kind of trouble that a call of the storage can meet. */
export type Fault = (typeof FAULTS)[number]

/** The transitions that scripts lead to. */
export const SIMULATED_TRANSITIONS = [
  'enqueue',
  'claim',
  'commit',
  'renew',
  'complete',
  'fail',
  'timeOut',
  'cancelled',
  'release',
  'retryLater',
  'suspend',
  'recover',
  'requestCancel',
  'cancel',
  'retry',
  'remove',
  'signal',
] as const satisfies readonly TransitionName[]

/** What no call of the engine asks for yet, so that the simulation asks the storage itself. */
export const STRUCK_TRANSITIONS = [
  'park',
  'parkPending',
  'unpark',
  'failParked',
  'purge',
] as const satisfies readonly TransitionName[]

export type SimulatedTransition = (typeof SIMULATED_TRANSITIONS)[number]

/** How many times each fault met each transition, `claim/throwBefore` and so on. */
export type Coverage = Map<string, number>

export function noteHits(coverage: Coverage, fault: Fault, transitions: Iterable<SimulatedTransition>): void {
  for (const transition of new Set(transitions)) {
    const name = `${transition}/${fault}`
    coverage.set(name, (coverage.get(name) ?? 0) + 1)
  }
}

export function noteAll(coverage: Coverage, more: Coverage): void {
  for (const [pair, hits] of more) coverage.set(pair, (coverage.get(pair) ?? 0) + hits)
}

/** Every pair with its count, the rarest first. */
export function coverageTable(coverage: Coverage): readonly { readonly pair: string; readonly hits: number }[] {
  const pairs = SIMULATED_TRANSITIONS.flatMap((transition) => FAULTS.map((fault) => `${transition}/${fault}`))
  return pairs.map((pair) => ({ pair, hits: coverage.get(pair) ?? 0 })).sort((a, b) => a.hits - b.hits)
}

/** What is rare meets trouble more often, or no number of seeds would cover it. */
export const TROUBLE_CHANCE: Readonly<Record<SimulatedTransition, number>> = {
  enqueue: 0.12,
  claim: 0.12,
  commit: 0.1,
  renew: 0.06,
  complete: 0.25,
  fail: 0.4,
  timeOut: 0.9,
  cancelled: 0.95,
  release: 0.9,
  retryLater: 0.9,
  suspend: 0.3,
  recover: 0.5,
  requestCancel: 0.6,
  cancel: 0.85,
  retry: 0.9,
  remove: 0.8,
  signal: 0.4,
}

export const IDLE_TROUBLE_CHANCE = 0.015

/** There are few transactions, and an unknown outcome of theirs is their only difficulty. */
export const TRANSACTION_TROUBLE_CHANCE = 0.6
