import { isSuspect, LIFECYCLE, type ClaimParams, type RunRecord } from '@coji/durably-core/storage'
import type { Draft } from './draft.ts'

/** Takes due runs in order, each with a lease of its own: a higher epoch and the token of this claim. */
export function claim(draft: Draft, params: ClaimParams): RunRecord[] {
  const live = draft.state.live()
  if (params.repeat === true) return live.filter((run) => run.claimToken === params.claimToken)
  const taken = takenSlots(live)
  const claimed: RunRecord[] = []
  for (const run of live.filter((each) => isDue(draft, each, params)).sort(inClaimOrder)) {
    if (claimed.length >= params.limit) break
    if (isSuspect(run) && (params.holdsSuspect || claimed.some(isSuspect))) continue
    const slot = slotFor(run, taken)
    if (slot === 'none free') continue
    if (slot !== null) slotsOf(taken, run).add(slot)
    claimed.push(claimOne(draft, run, { ...params, slot }))
  }
  return claimed
}

function claimOne(draft: Draft, run: RunRecord, params: ClaimParams & { readonly slot: number | null }): RunRecord {
  return draft.change(run, {
    status: 'running',
    ownerId: params.workerId,
    claimToken: params.claimToken,
    leaseEpoch: run.leaseEpoch + 1,
    leaseUntil: draft.in(params.leaseMs),
    leaderEpoch: null,
    commitNo: 0,
    waitingFor: null,
    concurrencySlot: params.slot,
    heartbeatAt: draft.now,
    startedAt: run.startedAt ?? draft.now,
    deadlineAt: run.deadlineAt ?? (run.timeoutMs === null ? null : draft.in(run.timeoutMs)),
  })
}

function isDue(draft: Draft, { status, availableAt, jobName }: RunRecord, { jobs }: ClaimParams): boolean {
  const mayBeClaimed = (LIFECYCLE.claim.from as readonly string[]).includes(status)
  return mayBeClaimed && availableAt !== null && availableAt <= draft.now && jobs.includes(jobName)
}

function inClaimOrder(a: RunRecord, b: RunRecord): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  const [first, second] = [`${a.availableAt} ${a.id}`, `${b.availableAt} ${b.id}`]
  return first < second ? -1 : first > second ? 1 : 0
}

/** Slots taken by (tenant, key). A waiting run that keeps its slot counts like a running one. */
type Slots = Map<string, Set<number>>

function takenSlots(live: readonly RunRecord[]): Slots {
  const taken: Slots = new Map()
  for (const run of live) if (run.concurrencySlot !== null) slotsOf(taken, run).add(run.concurrencySlot)
  return taken
}

function slotsOf(taken: Slots, { tenant, concurrencyKey }: RunRecord): Set<number> {
  const name = JSON.stringify([tenant, concurrencyKey])
  const slots = taken.get(name) ?? new Set()
  taken.set(name, slots)
  return slots
}

function slotFor(run: RunRecord, taken: Slots): number | null | 'none free' {
  if (run.concurrencyKey === null || run.concurrencySlot !== null) return run.concurrencySlot
  const slots = slotsOf(taken, run)
  for (let slot = 0; slot < run.concurrencyLimit; slot++) if (!slots.has(slot)) return slot
  return 'none free'
}
