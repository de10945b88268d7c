import type { Durably } from '@coji/durably-core'

interface Terms {
  readonly leaseMs: number
  readonly reassignAfterMs: number
}

/** What is set for all processes, as it was when it was read last; what the code says where nothing is set. */
export class LiveSettings {
  readonly #durably: Durably
  readonly #usual: Terms
  #now: Terms

  constructor(durably: Durably, usual: Terms) {
    this.#durably = durably
    this.#usual = usual
    this.#now = usual
  }

  get now(): Terms {
    return this.#now
  }

  /** What cannot be read stays as it was. A leader that was started does not wait for the answer. */
  look(): Promise<void> {
    const { leaseMs, reassignAfterMs } = this.#usual
    return this.#durably.settings.get().then(
      ({ leaderLeaseSeconds, reassignAfterSeconds }) => {
        this.#now = {
          leaseMs: leaderLeaseSeconds === undefined ? leaseMs : leaderLeaseSeconds * 1000,
          reassignAfterMs: reassignAfterSeconds === undefined ? reassignAfterMs : reassignAfterSeconds * 1000,
        }
      },
      () => {},
    )
  }
}
