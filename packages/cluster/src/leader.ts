import type { Durably } from '@coji/durably-core'
import { type ClusterStorage, type Lead, LEADER } from '@coji/durably-core/storage'
import type { LiveSettings } from './live-settings'

/** What this process knows of its lead. */
export interface LeaderStatus {
  /** Without any doubt: it was told so a short while ago. */
  readonly isLeader: boolean
  /** Of its lead; `null` while it has none. */
  readonly epoch: number | null
  /** Under which name it leads, or wants to. */
  readonly workerId: string
}

interface LeaderParams {
  readonly durably: Durably
  readonly cluster: ClusterStorage
  readonly settings: LiveSettings
}

/** The lead as it was granted. */
interface Held {
  readonly lead: Lead
  readonly askedAt: number
  readonly leaseMs: number
}

/** Takes the lead and keeps it. Whoever does something as the leader asks for it each time. */
export class Leader {
  readonly #params: LeaderParams
  readonly #workerId: string
  readonly #onGain = new Set<() => void>()
  #held: Held | null = null
  #isStarted = false
  /** Of the question that counts: an answer that comes after the next one was asked says nothing any more. */
  #question = 0
  #callOff: () => void = () => {}

  constructor(params: LeaderParams) {
    this.#params = params
    // Of this instance alone, also where two have the name of one worker.
    this.#workerId = `${params.durably.health().workerId} ${params.durably.drafts.environment.createId()}`
  }

  start(): () => Promise<void> {
    this.#isStarted = true
    this.#turn()
    return () => this.#stop()
  }

  /** Called when this process becomes the leader. */
  onGain(listener: () => void): () => void {
    this.#onGain.add(listener)
    return () => void this.#onGain.delete(listener)
  }

  /** The lead, while nobody else can have it. */
  current(): Lead | null {
    if (this.#held === null) return null
    const age = this.#params.durably.drafts.environment.clock.monotonic() - this.#held.askedAt
    if (age >= (2 * this.#held.leaseMs) / 3) this.#held = null
    return this.#held?.lead ?? null
  }

  status(): LeaderStatus {
    const lead = this.current()
    return { isLeader: lead !== null, epoch: lead?.epoch ?? null, workerId: this.#workerId }
  }

  /** A write was refused: somebody else may lead. */
  doubt(): void {
    this.#held = null
    if (this.#isStarted) this.#turn()
  }

  /** For one piece of work by who was not started: it is given back by `resign`. */
  async ask(): Promise<Lead | null> {
    const { durably, cluster, settings } = this.#params
    const { leaseMs } = settings.now
    this.#question += 1
    const question = this.#question
    const askedAt = durably.drafts.environment.clock.monotonic()
    const lead = await cluster.lead({ name: LEADER, workerId: this.#workerId, ttlMs: leaseMs }).catch((error) => {
      this.#note(question, null)
      throw error
    })
    this.#note(question, lead === null ? null : { lead, askedAt, leaseMs })
    return this.current()
  }

  async resign(): Promise<void> {
    const held = this.#held
    this.#held = null
    this.#question += 1
    // It ends by itself as well.
    if (held !== null) await this.#params.cluster.resign(held.lead).catch(() => {})
  }

  #note(question: number, held: Held | null): void {
    if (question !== this.#question) return
    const before = this.#held
    this.#held = held
    if (before === null && this.current() !== null) for (const listener of this.#onGain) listener()
  }

  /** The next question does not wait for an answer that may never come. */
  #turn(): void {
    const { durably, settings } = this.#params
    const { clock, random } = durably.drafts.environment
    this.#callOff()
    this.ask().catch((error: unknown) => {
      if (this.#isStarted) durably.reportError(error, 'lead')
    })
    void settings.look()
    const untilNext = (settings.now.leaseMs / 3) * (this.#held === null ? 0.5 + random() / 2 : 1)
    this.#callOff = clock.schedule(untilNext, () => this.#turn())
  }

  async #stop(): Promise<void> {
    this.#isStarted = false
    this.#callOff()
    await this.resign()
  }
}

const leaders = new WeakMap<Durably, Leader>()

/** Schedules, messages and placement of an instance have this leader, where there is one. */
export function leaderOf(durably: Durably): Leader | undefined {
  return leaders.get(durably)
}

export function setLeader(durably: Durably, leader: Leader): void {
  leaders.set(durably, leader)
}
