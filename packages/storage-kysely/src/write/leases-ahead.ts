import type { Row } from '../statement'

interface Watched {
  readonly heartbeatAt: unknown
  readonly since: number
}

/**
 * Leases that were renewed in the future: the clock has been set back since, and by the clock they would hold as much
 * longer. Whoever lives renews them by the new clock. One that is left as it is for as long as it was given has run out,
 * by the time that passed here.
 */
export class LeasesAhead {
  readonly #monotonic: () => number
  #watched = new Map<unknown, Watched>()

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  /** Those of the rows whose lease has run out, by the clock or without it. */
  withoutLive(rows: readonly Row[]): readonly Row[] {
    const before = this.#watched
    this.#watched = new Map()
    return rows.filter((row) => row['is_ahead'] !== 1 || this.#hasRunOut(row, before.get(row['id'])))
  }

  #hasRunOut(row: Row, before: Watched | undefined): boolean {
    const { id, heartbeat_at: heartbeatAt, lease_until: leaseUntil } = row
    const now = this.#monotonic()
    const since = before !== undefined && before.heartbeatAt === heartbeatAt ? before.since : now
    this.#watched.set(id, { heartbeatAt, since })
    return now - since >= Date.parse(String(leaseUntil)) - Date.parse(String(heartbeatAt))
  }
}
