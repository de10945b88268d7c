import { ask, type Engine, reportTrouble } from '../engine'
import type { Lease, RenewAnswer } from '../port'

/**
 * A lease makes one worker the only one that may commit for a run. The storage decides who holds it; what is kept here
 * is the worker's own, more pessimistic view: when it last sent a renewal that was answered. Past that time plus the
 * lease (less one heartbeat) it stops the execution by itself, without asking anyone.
 */
export interface HeldLease {
  readonly lease: Lease
  readonly claimedAt: number
  /** The storage answered that the lease was lost, or that somebody wants the run cancelled. */
  onAnswer(answer: RenewAnswer): void
  /** Not renewed for so long that someone else may own the run by now. */
  onOutOfTouch(): void
}

export interface LeaseKeeper {
  hold(held: HeldLease): { extendedAt(sentAt: number): void; drop(): void }
  /** As `hold`, for who has nothing but its end to commit. */
  enter(held: HeldLease, now: number): void
  leave(held: HeldLease): void
  heldRunIds(): readonly string[]
  /** Renews everything at once; false when the storage did not answer. */
  renew(): Promise<boolean>
  /** As `renew`, but not content with the answer to what was sent before. */
  renewAfresh(): Promise<boolean>
  /** Renews this run soon, and with it what else is asked for meanwhile: it hears at once of signals and of a cancel. */
  renewOf(runId: string): void
  /** Aborts what was not renewed in time. */
  checkTouch(): void
}

export function createLeaseKeeper(engine: Engine): LeaseKeeper {
  const { clock } = engine.environment
  // Asked each time: a plugin may lengthen the lease after this was made.
  const patienceMs = () => {
    const { leaseMs, heartbeatIntervalMs } = engine.options
    return Math.max(leaseMs - heartbeatIntervalMs, leaseMs / 2)
  }
  const all = new Map<HeldLease, number>()
  let renewing: Promise<boolean> | null = null
  const asked = new Set<string>()
  let isAsking = false

  async function renewThese(held: readonly HeldLease[]): Promise<boolean> {
    if (held.length === 0) return true
    const sentAt = clock.monotonic()
    try {
      const leases = held.map((each) => each.lease)
      const answers = await ask(engine, (storage) => storage.renew(leases, engine.options.leaseMs))
      held.forEach((each, index) => {
        const answer = answers[index]
        if (answer === undefined || !all.has(each)) return
        if (answer.kept) all.set(each, sentAt)
        each.onAnswer(answer)
      })
      return true
    } catch (error) {
      reportTrouble(engine, error, 'renew')
      return false
    }
  }

  /** While one renewal is under way, the next gathers. */
  async function renewAsked(): Promise<void> {
    isAsking = true
    await null
    while (asked.size > 0) {
      const held = [...all.keys()].filter(({ lease }) => asked.has(lease.runId))
      asked.clear()
      await renewThese(held)
    }
    isAsking = false
  }

  function renew(): Promise<boolean> {
    renewing ??= renewThese([...all.keys()]).finally(() => {
      renewing = null
    })
    return renewing
  }

  function enter(held: HeldLease, now: number): void {
    all.set(held, held.claimedAt)
    // The answer to the claim may have come after the lease.
    if (now - held.claimedAt > patienceMs()) held.onOutOfTouch()
  }

  return {
    enter,
    leave: (held) => void all.delete(held),
    hold(held) {
      enter(held, clock.monotonic())
      return {
        extendedAt(sentAt) {
          const latest = all.get(held)
          if (latest !== undefined) all.set(held, Math.max(latest, sentAt))
        },
        drop: () => void all.delete(held),
      }
    },
    heldRunIds: () => [...all.keys()].map((held) => held.lease.runId),
    renew,
    renewOf(runId) {
      asked.add(runId)
      if (!isAsking) void renewAsked()
    },
    renewAfresh: () => (renewing === null ? renew() : renewing.then(renew)),
    checkTouch() {
      const now = clock.monotonic()
      const allowedMs = patienceMs()
      for (const [held, extendedAt] of all) if (now - extendedAt > allowedMs) held.onOutOfTouch()
    },
  }
}
