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

/** The leases of one worker. */
export class LeaseKeeper {
  readonly #engine: Engine
  readonly #all = new Map<HeldLease, Granted>()
  /** Runs that are to be renewed soon. */
  readonly #asked = new Set<string>()
  #isAsking = false
  #renewing: Promise<boolean> | null = null

  constructor(engine: Engine) {
    this.#engine = engine
  }

  hold(held: HeldLease): { extendedAt(sentAt: number): void; drop(): void } {
    this.enter(held, this.#engine.environment.clock.monotonic())
    return {
      extendedAt: (sentAt) => {
        const latest = this.#all.get(held)
        if (latest === undefined) return
        this.#all.set(held, { at: Math.max(latest.at, sentAt), leaseMs: this.#lengthOf(held) })
      },
      drop: () => this.drop(held),
    }
  }

  /** As `hold`, for who has nothing but its end to commit. */
  enter(held: HeldLease, now: number): void {
    const { leaseMs } = this.#engine.options
    this.#all.set(held, { at: held.claimedAt, leaseMs })
    // The answer to the claim may have come after the lease.
    if (now - held.claimedAt > this.#patienceMs(leaseMs)) held.onOutOfTouch()
    // A claim takes runs of many jobs for the same time.
    else if (this.#lengthOf(held) > leaseMs) this.renewOf(held.lease.runId)
  }

  drop(held: HeldLease): void {
    this.#all.delete(held)
  }

  heldRunIds(): readonly string[] {
    return [...this.#all.keys()].map((held) => held.lease.runId)
  }

  /** Renews everything at once; false when the storage did not answer. */
  renew(): Promise<boolean> {
    this.#renewing ??= this.#renewThese([...this.#all.keys()]).finally(() => {
      this.#renewing = null
    })
    return this.#renewing
  }

  /** As `renew`, but not content with the answer to what was sent before. */
  renewAfresh(): Promise<boolean> {
    return this.#renewing === null ? this.renew() : this.#renewing.then(() => this.renew())
  }

  /** Renews this run soon, and with it what else is asked for meanwhile: it hears at once of signals and of a cancel. */
  renewOf(runId: string): void {
    this.#asked.add(runId)
    if (!this.#isAsking) void this.#renewAsked()
  }

  /** Aborts what was not renewed in time. */
  checkTouch(): void {
    const now = this.#engine.environment.clock.monotonic()
    for (const [held, { at, leaseMs }] of this.#all) if (now - at >= this.#patienceMs(leaseMs)) held.onOutOfTouch()
  }

  #patienceMs(leaseMs: number): number {
    return Math.max(leaseMs - this.#engine.options.heartbeatIntervalMs, leaseMs / 2)
  }

  /** Asked each time: a plugin may lengthen the lease after this was made. */
  #lengthOf(held: HeldLease): number {
    return held.leaseMs?.() ?? this.#engine.options.leaseMs
  }

  /** While one renewal is under way, the next gathers. */
  async #renewAsked(): Promise<void> {
    this.#isAsking = true
    await null
    while (this.#asked.size > 0) {
      const held = [...this.#all.keys()].filter(({ lease }) => this.#asked.has(lease.runId))
      this.#asked.clear()
      await this.#renewThese(held)
    }
    this.#isAsking = false
  }

  async #renewThese(held: readonly HeldLease[]): Promise<boolean> {
    const groups = byLength(held, (each) => this.#lengthOf(each))
    const answers = await Promise.all(groups.map((alike) => this.#renewAlike(alike)))
    return answers.every((isAnswered) => isAnswered)
  }

  async #renewAlike({ held, leaseMs }: Alike): Promise<boolean> {
    const sentAt = this.#engine.environment.clock.monotonic()
    try {
      const leases = held.map((each) => each.lease)
      const answers = await ask(this.#engine, (storage) => storage.renew(leases, leaseMs))
      held.forEach((each, index) => {
        const answer = answers[index]
        if (answer === undefined || !this.#all.has(each)) return
        if (answer.kept) this.#all.set(each, { at: sentAt, leaseMs })
        each.onAnswer(answer)
      })
      return true
    } catch (error) {
      reportTrouble(this.#engine, error, 'renew')
      return false
    }
  }
}
