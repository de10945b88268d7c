import type { Durably } from '@coji/durably-core'
import type { ClusterStorage, Lead } from '@coji/durably-core/storage'
import { leaderOf } from './leader'

/** What is done by one process at a time. */
export interface DutyParams {
  readonly durably: Durably
  readonly cluster: ClusterStorage
  /** Of the lead, where there is no leader for all duties. */
  readonly name: string
  /** Whoever does not hear of something looks this often. */
  readonly everyMs: number
  /** Before the first work, until it succeeds. */
  prepare(): Promise<void>
  /** Whether there is something new to prepare, asked before each work. Left out: nothing but what `unprepare` tells of. */
  isStale?(): boolean
  /** Milliseconds until there is more to do; `null`: nothing is known of. */
  work(lead: Lead): Promise<number | null>
}

/** Without a sign of life for so long, somebody else takes over. */
const LEAD_MS = 15_000
const RENEW_AFTER_MS = LEAD_MS / 3
const AFTER_TROUBLE_MS = 1000

/** Does its work while this process has the lead, and tries to get it while another has. */
export class Duty {
  readonly #params: DutyParams
  readonly #workerId: string
  #lead: { readonly lead: Lead; readonly askedAt: number } | null = null
  #isStarted = false
  #isPrepared = false
  /** Somebody told of work while there was some under way. */
  #isWoken = false
  #turn: Promise<void> | null = null
  #callOff: () => void = () => {}
  #offGain: () => void = () => {}

  constructor(params: DutyParams) {
    this.#params = params
    // Of this instance alone, also where two have the name of one worker.
    this.#workerId = `${params.durably.health().workerId} ${params.durably.drafts.environment.createId()}`
  }

  start(): () => Promise<void> {
    this.#isStarted = true
    this.#offGain = leaderOf(this.#params.durably)?.onGain(() => this.wake()) ?? (() => {})
    this.#begin()
    return () => this.#stop()
  }

  /** There is something to do. */
  wake(): void {
    if (!this.#isStarted) return
    if (this.#turn === null) this.#begin()
    else this.#isWoken = true
  }

  /** Something has to be prepared anew. */
  unprepare(): void {
    this.#isPrepared = false
    this.wake()
  }

  /** Works once, whether it was started or not; whether it had the lead. */
  async workNow(): Promise<boolean> {
    while (this.#turn !== null) await this.#turn
    this.#callOff()
    const turn = this.#once()
    this.#turn = turn.then(
      () => {},
      () => {},
    )
    try {
      return (await turn) !== 'away'
    } finally {
      this.#turn = null
      if (this.#isStarted) this.#later(0)
      else await this.#giveBack()
    }
  }

  #begin(): void {
    this.#callOff()
    this.#turn = this.#take().then((waitMs) => {
      this.#turn = null
      if (this.#isStarted) this.#later(this.#isWoken ? 0 : waitMs)
      this.#isWoken = false
    })
  }

  #later(waitMs: number): void {
    const { clock } = this.#params.durably.drafts.environment
    this.#callOff = clock.schedule(waitMs, () => this.#begin())
  }

  async #take(): Promise<number> {
    const { durably, name, everyMs } = this.#params
    try {
      const next = await this.#once()
      if (next === 'away') return RENEW_AFTER_MS * (0.5 + durably.drafts.environment.random() / 2)
      return Math.min(next ?? everyMs, everyMs)
    } catch (error) {
      this.#lead = null
      if (this.#isStarted) durably.reportError(error, name)
      return AFTER_TROUBLE_MS
    }
  }

  async #once(): Promise<number | null | 'away'> {
    if (!this.#isPrepared || this.#params.isStale?.()) {
      this.#isPrepared = true
      await this.#params.prepare().catch((error: unknown) => {
        this.#isPrepared = false
        throw error
      })
    }
    const lead = await this.#takeLead()
    return lead === null ? 'away' : this.#params.work(lead)
  }

  async #takeLead(): Promise<Lead | null> {
    const leader = leaderOf(this.#params.durably)
    if (leader !== undefined) return this.#isStarted ? leader.current() : leader.ask()
    const { clock } = this.#params.durably.drafts.environment
    const askedAt = clock.monotonic()
    if (this.#lead !== null && askedAt - this.#lead.askedAt < RENEW_AFTER_MS) return this.#lead.lead
    this.#lead = null
    const { name, cluster } = this.#params
    const lead = await cluster.lead({ name, workerId: this.#workerId, ttlMs: LEAD_MS })
    if (lead !== null) this.#lead = { lead, askedAt }
    return lead
  }

  /** Somebody else has it: this process does not believe any longer. */
  forgetLead(): void {
    this.#lead = null
    leaderOf(this.#params.durably)?.doubt()
  }

  async #stop(): Promise<void> {
    this.#isStarted = false
    this.#callOff()
    this.#offGain()
    await this.#turn
    await this.#resign()
  }

  /** What was taken for one piece of work. */
  async #giveBack(): Promise<void> {
    await leaderOf(this.#params.durably)?.resign()
    await this.#resign()
  }

  async #resign(): Promise<void> {
    const held = this.#lead
    this.#lead = null
    // It ends by itself as well.
    if (held !== null) await this.#params.cluster.resign(held.lead).catch(() => {})
  }
}

/** Of several waits for more to do the shortest that is known. */
export function soonest(waits: readonly (number | null)[]): number | null {
  const known = waits.filter((each) => each !== null)
  return known.length === 0 ? null : Math.min(...known)
}
