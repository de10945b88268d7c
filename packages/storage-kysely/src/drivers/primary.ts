import type pg from 'pg'

/**
 * Which connections of a pool lead to the server that takes writes, as far as is known. What was made before a server was
 * left leads to that one, however healthy it looks.
 */
export class Primary {
  readonly #pool: pg.Pool
  readonly #eras = new WeakMap<pg.PoolClient, number>()
  #era = 0

  constructor(pool: pg.Pool) {
    this.#pool = pool
    pool.on('connect', this.#noteNew)
  }

  hasNotLeft(client: pg.PoolClient): boolean {
    return this.#eraOf(client) === this.#era
  }

  leave(): void {
    this.#era += 1
  }

  forget(): void {
    this.#pool.off('connect', this.#noteNew)
  }

  readonly #noteNew = (client: pg.PoolClient): void => {
    this.#eras.set(client, this.#era)
  }

  /** A pool of the application can have had it before. */
  #eraOf(client: pg.PoolClient): number {
    return this.#eras.get(client) ?? 0
  }
}
