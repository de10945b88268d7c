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
  /** What it is to be from each renewal on, where that is more than usual. */
  readonly leaseMs?: () => number
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

/** What the storage was last heard to give. */
interface Granted {
  /** When it was asked, by the worker's own clock. */
  readonly at: number
  readonly leaseMs: number
}

/** Leases that are renewed for the same time. */
interface Alike {
  readonly held: readonly HeldLease[]
  readonly leaseMs: number
}

function byLength(all: readonly HeldLease[], lengthOf: (held: HeldLease) => number): readonly Alike[] {
  const groups = new Map<number, HeldLease[]>()
  for (const held of all) {
    const leaseMs = lengthOf(held)
    const group = groups.get(leaseMs)
    if (group === undefined) groups.set(leaseMs, [held])
    else group.push(held)
  }
  return [...groups].map(([leaseMs, held]) => ({ held, leaseMs }))
}

async function allOf(answers: readonly Promise<boolean>[]): Promise<boolean> {
  return (await Promise.all(answers)).every((isAnswered) => isAnswered)
}

export function createLeaseKeeper(engine: Engine): LeaseKeeper {
  const { clock } = engine.environment
  const patienceMs = (leaseMs: number) => Math.max(leaseMs - engine.options.heartbeatIntervalMs, leaseMs / 2)
  const all = new Map<HeldLease, Granted>()
  // Asked each time: a plugin may lengthen the lease after this was made.
  const lengthOf = (held: HeldLease) => held.leaseMs?.() ?? engine.options.leaseMs
  const asked = new Set<string>()
  let [renewing, isAsking]: [Promise<boolean> | null, boolean] = [null, false]

  function renewThese(held: readonly HeldLease[]): Promise<boolean> {
    const [first, ...others] = byLength(held, lengthOf)
    if (first === undefined) return Promise.resolve(true)
    return others.length === 0 ? renewAlike(first) : allOf([first, ...others].map(renewAlike))
  }

  async function renewAlike({ held, leaseMs }: Alike): Promise<boolean> {
    const sentAt = clock.monotonic()
    try {
      const leases = held.map((each) => each.lease)
      const answers = await ask(engine, (storage) => storage.renew(leases, leaseMs))
      held.forEach((each, index) => {
        const answer = answers[index]
        if (answer === undefined || !all.has(each)) return
        if (answer.kept) all.set(each, { at: sentAt, leaseMs })
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

  function renewOf(runId: string): void {
    asked.add(runId)
    if (!isAsking) void renewAsked()
  }

  function renew(): Promise<boolean> {
    renewing ??= renewThese([...all.keys()]).finally(() => {
      renewing = null
    })
    return renewing
  }

  function enter(held: HeldLease, now: number): void {
    const { leaseMs } = engine.options
    all.set(held, { at: held.claimedAt, leaseMs })
    // The answer to the claim may have come after the lease.
    if (now - held.claimedAt > patienceMs(leaseMs)) held.onOutOfTouch()
    // A claim takes runs of many jobs for the same time.
    else if (lengthOf(held) > leaseMs) renewOf(held.lease.runId)
  }

  return {
    enter,
    leave: (held) => void all.delete(held),
    hold(held) {
      enter(held, clock.monotonic())
      return {
        extendedAt(sentAt) {
          const latest = all.get(held)
          if (latest !== undefined) all.set(held, { at: Math.max(latest.at, sentAt), leaseMs: lengthOf(held) })
        },
        drop: () => void all.delete(held),
      }
    },
    heldRunIds: () => [...all.keys()].map((held) => held.lease.runId),
    renew,
    renewOf,
    renewAfresh: () => (renewing === null ? renew() : renewing.then(renew)),
    checkTouch() {
      const now = clock.monotonic()
      for (const [held, { at, leaseMs }] of all) if (now - at >= patienceMs(leaseMs)) held.onOutOfTouch()
    },
  }
}
