import type { Instant, Lead, LeadParams, LeadRecord } from '../port'
import type { Clock } from './clock'

interface Held extends Lead {
  readonly until: Instant
}

/** Who leads. What was given up keeps its epoch. */
export class Leads {
  readonly #byName = new Map<string, Held>()

  take({ name, workerId, ttlMs }: LeadParams, clock: Clock): Lead | null {
    const held = this.#byName.get(name)
    const isOver = held === undefined || held.until <= clock.now()
    const isOwn = held?.workerId === workerId
    if (!isOver && !isOwn) return null
    const epoch = isOwn && !isOver ? held.epoch : (held?.epoch ?? 0) + 1
    this.#byName.set(name, { name, workerId, epoch, until: clock.in(ttlMs) })
    return { name, workerId, epoch }
  }

  resign(lead: Lead, clock: Clock): void {
    if (this.isCurrent(lead)) this.#byName.set(lead.name, { ...lead, until: clock.now() })
  }

  get(name: string, clock: Clock): LeadRecord | null {
    const held = this.#byName.get(name)
    return held === undefined ? null : { ...held, isOver: held.until <= clock.now() }
  }

  /** Whether somebody has led within so many milliseconds. */
  wasLed(name: string, withinMs: number, clock: Clock): boolean {
    const held = this.#byName.get(name)
    return held !== undefined && held.until > clock.in(-withinMs)
  }

  /** Nobody else has taken it since, whether its time is over or not. */
  isCurrent({ name, workerId, epoch }: Lead): boolean {
    const held = this.#byName.get(name)
    return held?.workerId === workerId && held.epoch === epoch
  }
}
