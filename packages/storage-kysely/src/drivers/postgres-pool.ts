import { StorageError } from '@coji/durably-core/storage'
import type { CompiledQuery, PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { connectionHeld, noteOfConnecting, within } from '../connection'
import { CallerPlaces } from './caller-places'
import { CALLERS_LOCK_MS, isVarying, type Rows, type Sender } from '../dialect'
import { keepAwake } from './keep-awake'
import { asSent, beginOf, learnSession, needsTransaction } from './postgres-session'
import { explainedEnd, explainedPooler, explainedStart, isMixedUp } from './connection-trouble'
import { Primary } from './primary'
import { hashOf } from './text-hash'

interface PostgresPoolParams {
  readonly pool: pg.Pool
  readonly prepare: boolean
  readonly isOwn: boolean
}

/** More than durably has statements; what a caller composes beyond that is not prepared. */
const MAX_PREPARED = 300

/** How old the plan of a prepared statement becomes: the one for an empty table would last for a minute otherwise. */
const PLAN_MIN_MS = 1000
const PLAN_MAX_MS = 10_000

const AWAY_MIN_MS = 50
const AWAY_MAX_MS = 1000

/** A connection that died without a word would be waited for until the end of time. */
export const QUERY_TIMEOUT_MS = 35_000

/**
 * A name says of which text it is: where a pooler lends a session to others, none of them can execute the statement of
 * another. All instances on a pool share the names, which are limited by connection.
 */
const namesOf = new WeakMap<pg.Pool, Map<string, string>>()

/** So do the places. */
const placesOf = new WeakMap<pg.Pool, CallerPlaces>()

/** What `pg` takes for a pool that does not say. */
const DEFAULT_MAX = 10

/** The connections through which durably sends its own statements. */
export class PostgresPool {
  readonly #pool: pg.Pool
  /** Until the database takes a statement for another one, or for none. */
  #prepare: boolean
  readonly #isOwn: boolean
  readonly #names: Map<string, string>
  readonly #places: CallerPlaces
  readonly #plans = new WeakMap<pg.PoolClient, { readonly ageMs: number; readonly untilMs: number }>()
  readonly #primary: Primary
  /** Since the last connection that was made. */
  #failures = 0
  #away: { readonly untilMs: number; readonly error: unknown } | null = null

  constructor({ pool, prepare, isOwn }: PostgresPoolParams) {
    this.#pool = pool
    this.#prepare = prepare
    this.#isOwn = isOwn
    this.#names = namesOf.get(pool) ?? new Map<string, string>()
    namesOf.set(pool, this.#names)
    this.#places = placesOf.get(pool) ?? new CallerPlaces(pool.options.max ?? DEFAULT_MAX)
    placesOf.set(pool, this.#places)
    this.#primary = new Primary(pool)
    // Without a listener an idle connection that dies takes the process along, and so does one that is in use. A pool of
    // the application can have connections already. Once is enough for all instances on the pool, and one stays: a
    // connection may die after the last of them.
    if (!pool.listeners('error').includes(ignore)) pool.on('error', ignore)
    pool.on('acquire', listenForErrors)
  }

  /** One statement alone, several in a transaction. */
  async send(queries: readonly CompiledQuery[], waitMs: number, sender: Sender): Promise<readonly Rows[]> {
    const deadline = performance.now() + waitMs
    const left = () => Math.max(Math.ceil(deadline - performance.now()), 1)
    if (sender === 'owner') return this.#sendWithin(queries, left, left)
    const giveBack = await this.#places.take(sender === 'remover' ? 'caller' : sender, waitMs)
    try {
      return await this.#sendWithin(queries, left, () => Math.min(left(), CALLERS_LOCK_MS))
    } finally {
      giveBack()
    }
  }

  async #sendWithin(
    queries: readonly CompiledQuery[],
    left: () => number,
    lockMs: () => number,
  ): Promise<readonly Rows[]> {
    const client = await this.#checkOut(left())
    let broken: unknown
    try {
      await learnSession(client)
      if (this.#prepare) await this.#renewPlans(client)
      const isAlone = queries.length === 1 && !needsTransaction(client, queries[0]?.sql ?? '')
      return await (isAlone ? this.#sendEach(client, queries) : this.#sendAtomically(client, queries, lockMs()))
    } catch (error) {
      if (isBroken(error)) broken = error
      if (isDemoted(error)) this.#leave(client, error)
      if (!this.#prepare || !isMixedUp(error)) throw error
      this.#prepare = false
      throw explainedPooler(error)
    } finally {
      client.release(broken === undefined ? undefined : toError(broken))
    }
  }

  async notify(channel: string, payload: string): Promise<void> {
    const client = await this.#checkOut(1000)
    try {
      await client.query('select pg_notify($1, $2)', [channel, payload])
      client.release()
    } catch (error) {
      client.release(toError(error))
      throw error
    }
  }

  /** For Kysely, which waits for as long as it takes. */
  async lend(): Promise<PostgresPoolClient> {
    const giveBack = await this.#places.take('transaction')
    const client = await this.#atTheDoor(() => this.#pool.connect()).catch((error: unknown) => {
      giveBack()
      throw error
    })
    let broken: unknown
    let isReadOnly = false
    const query = async (text: string, values: readonly unknown[]) => {
      isReadOnly ||= READ_ONLY.test(text)
      try {
        return await client.query(asSent(client, text), [...values])
      } catch (thrown) {
        const error = explainedEnd(thrown, deaths.get(client))
        if (isBroken(error)) broken = error
        if (isDemoted(error) && !isReadOnly) this.#leave(client, error)
        throw error
      }
    }
    const release = () => {
      try {
        client.release(broken === undefined ? undefined : toError(broken))
      } finally {
        giveBack()
      }
    }
    return { query, release } as unknown as PostgresPoolClient
  }

  /** Outside of the pool, for a connection that stays. */
  newClient(): pg.Client {
    const { max: _max, ...options } = this.#pool.options
    // The pool hides its password from whoever copies its options.
    const { password } = this.#pool.options
    return new pg.Client({ ...options, ...(password !== undefined && { password }), query_timeout: 5000 })
  }

  async close(): Promise<void> {
    this.#pool.off('acquire', listenForErrors)
    this.#primary.forget()
    if (this.#isOwn) await keepAwake(this.#pool.end())
  }

  async #sendAtomically(client: pg.PoolClient, queries: readonly CompiledQuery[], lockMs: number): Promise<Rows[]> {
    await client.query(timed({ text: beginOf(client, lockMs) }))
    try {
      const results = await this.#sendEach(client, queries)
      await client.query(timed({ text: 'commit' }))
      return results
    } catch (error) {
      // A connection whose transaction cannot be ended must not be used again.
      await client.query(timed({ text: 'rollback' })).catch((failure: unknown) => {
        throw Object.assign(toError(failure), { cause: error })
      })
      throw error
    }
  }

  async #sendEach(client: pg.PoolClient, queries: readonly CompiledQuery[]): Promise<Rows[]> {
    const results: Rows[] = []
    for (const query of queries) {
      const { sql, parameters } = query
      const name = isVarying(query) ? {} : this.#nameOf(sql)
      const { rows } = await client.query(timed({ ...name, text: sql, values: [...parameters] }))
      results.push(rows as Rows)
    }
    return results
  }

  async #renewPlans(client: pg.PoolClient): Promise<void> {
    const now = performance.now()
    const plans = this.#plans.get(client)
    if (plans !== undefined && now < plans.untilMs) return
    const ageMs = plans === undefined ? PLAN_MIN_MS : Math.min(plans.ageMs * 2, PLAN_MAX_MS)
    this.#plans.set(client, { ageMs, untilMs: now + ageMs })
    if (plans !== undefined) await client.query('discard plans')
  }

  #nameOf(sql: string): { readonly name?: string } {
    if (!this.#prepare) return {}
    const known = this.#names.get(sql)
    if (known !== undefined) return { name: known }
    if (this.#names.size === MAX_PREPARED) return {}
    const name = `durably_${hashOf(sql)}`
    this.#names.set(sql, name)
    return { name }
  }

  #checkOut(waitMs: number): Promise<pg.PoolClient> {
    return this.#atTheDoor(() => this.#connect(waitMs))
  }

  async #atTheDoor(connect: () => Promise<pg.PoolClient>): Promise<pg.PoolClient> {
    const away = this.#away
    if (away !== null && this.#pool.idleCount === 0) {
      if (performance.now() < away.untilMs) throw away.error
      // One goes and looks; the others hear from it.
      this.#away = { ...away, untilMs: performance.now() + AWAY_MAX_MS }
    }
    try {
      const client = await this.#connectToPrimary(connect)
      this.#failures = 0
      this.#away = null
      return client
    } catch (thrown) {
      const error = explainedStart(thrown)
      noteOfConnecting(error)
      if (!(error instanceof StorageError)) this.#noteAway(error)
      throw error
    }
  }

  async #connectToPrimary(connect: () => Promise<pg.PoolClient>): Promise<pg.PoolClient> {
    for (;;) {
      const client = await connect()
      if (this.#primary.hasNotLeft(client)) return client
      client.release(true)
    }
  }

  /** The server takes no writes any more: another one is the primary now, or will be, behind the same address. */
  #leave(client: pg.PoolClient, error: unknown): void {
    if (!this.#primary.hasNotLeft(client)) return
    this.#primary.leave()
    this.#noteAway(error)
  }

  /** While the database is away, not everyone who needs it knocks at its door. */
  #noteAway(error: unknown): void {
    this.#failures += 1
    const delayMs = Math.min(AWAY_MIN_MS * 2 ** Math.min(this.#failures, 10), AWAY_MAX_MS)
    this.#away = { untilMs: performance.now() + delayMs * (0.5 + Math.random() / 2), error }
  }

  #connect(waitMs: number): Promise<pg.PoolClient> {
    return within(this.#pool.connect(), waitMs, { error: connectionHeld, onLate: (client) => client.release() })
  }
}

/** What connections that nobody was using died of. */
const deaths = new WeakMap<object, Error>()

function listenForErrors(client: pg.PoolClient): void {
  if (!client.listeners('error').includes(noteDeath)) client.on('error', noteDeath)
}

/** The next statement on it fails, and tells. */
function noteDeath(this: object, error: Error): void {
  if (!deaths.has(this)) deaths.set(this, error)
}

function ignore(): void {}

function timed<T extends object>(query: T): T & { readonly query_timeout: number } {
  return { ...query, query_timeout: QUERY_TIMEOUT_MS }
}

/**
 * The server says no to a statement; anything else is trouble of the connection, which is not used again, nor is one
 * that takes other statements for prepared than the server does, or leads to a server that takes no writes.
 */
function isBroken(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || ENDS.test(error.code ?? '') || isMixedUp(error) || isDemoted(error)
}

/** Told with the end of the session. The severity would say so in the language of the server. */
const ENDS = /^(08...|28...|57P..|53300|25P0[34]|3D000)$/

/** The application asks for such a transaction; a write in it says nothing of the server. */
const READ_ONLY = /read[ _]only/i

function isDemoted(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006'
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
