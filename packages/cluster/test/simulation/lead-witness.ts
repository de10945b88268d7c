import type { Lead, LeadParams } from '@coji/durably-core/storage'
import type { MemoryStorage } from '@coji/durably-core/memory'

interface Seen extends Lead {
  readonly untilMs: number
}

/** What each lead allows: of every name it belongs to one process at a time, and its epochs grow. */
export class LeadWitness {
  readonly #wrong: string[]
  readonly #now: () => number
  readonly #newest = new Map<string, Seen>()

  constructor(wrong: string[], now: () => number) {
    this.#wrong = wrong
    this.#now = now
  }

  /** The calls by which the lead changes hands. */
  watch(cluster: MemoryStorage['cluster']): Pick<MemoryStorage['cluster'], 'lead' | 'resign'> {
    return {
      lead: async (params) => {
        const askedAt = this.#now()
        const lead = await cluster.lead(params)
        if (lead !== null) this.#note(params, lead, askedAt)
        return lead
      },
      resign: async (lead) => {
        const held = this.#newest.get(lead.name)
        if (held !== undefined && isSame(held, lead)) this.#newest.set(lead.name, { ...held, untilMs: this.#now() })
        await cluster.resign(lead)
      },
    }
  }

  /** As it is at this moment, for a write that is judged when its answer has come. */
  seen(): LeadsSeen {
    return new LeadsSeen(this.#wrong, new Map(this.#newest), this.#now())
  }

  #note({ name, ttlMs }: LeadParams, lead: Lead, askedAt: number): void {
    const before = this.#newest.get(name)
    const isOther = before?.workerId !== lead.workerId
    if (before !== undefined && isOther && before.untilMs > askedAt) {
      this.#wrong.push(`${lead.workerId} got the lead over ${name} while ${before.workerId} had it`)
    }
    if (before !== undefined && !isSame(before, lead) && lead.epoch <= before.epoch) {
      this.#wrong.push(`epoch ${lead.epoch} of ${name} came after ${before.epoch}`)
    }
    this.#newest.set(name, { ...lead, untilMs: askedAt + ttlMs })
  }
}

/** Who led when something was asked for. */
export class LeadsSeen {
  readonly #wrong: string[]
  readonly #newest: ReadonlyMap<string, Seen>
  readonly #nowMs: number

  constructor(wrong: string[], newest: ReadonlyMap<string, Seen>, nowMs: number) {
    this.#wrong = wrong
    this.#newest = newest
    this.#nowMs = nowMs
  }

  /** Something was done under this lead. */
  mustBeNewest(what: string, lead: Lead): void {
    const newest = this.#newest.get(lead.name)
    if (newest !== undefined && isSame(newest, lead)) return
    this.#wrong.push(`${what} happened under epoch ${lead.epoch} of ${lead.workerId} while ${newest?.epoch} led`)
  }

  /** Whether somebody has led within so many milliseconds. */
  wasLed(name: string, withinMs: number): boolean {
    return (this.#newest.get(name)?.untilMs ?? Number.NEGATIVE_INFINITY) > this.#nowMs - withinMs
  }
}

function isSame(one: Lead, other: Lead): boolean {
  return one.epoch === other.epoch && one.workerId === other.workerId
}
