import pg from 'pg'
import { createKyselyStorageWith, type KyselyStorage } from '../../src/kysely-storage'
import { FENCES, type Fences } from '../../src/statement/fences'
import { postgres } from '../../src/drivers/postgres'

interface SessionParams {
  readonly url: string
  readonly fences?: Fences
  /** What it sends instead of a statement. */
  readonly mutate?: (sql: string) => string
}

/** A storage whose messages wait for their turn, and that leaves its transactions open until they get another one. */
export class Session {
  readonly storage: KyselyStorage
  /** What the database answered instead of rows. */
  readonly errors: string[] = []
  readonly #pool: pg.Pool
  readonly #mutate: (sql: string) => string
  #pid = 0
  #isPlaying = false
  #transaction: 'new' | 'started' | null = null
  #goOn: (() => void) | null = null
  #changed = () => {}

  constructor({ url, fences = FENCES, mutate = (sql) => sql }: SessionParams) {
    this.#mutate = mutate
    this.#pool = new pg.Pool({ connectionString: url, max: 4 })
    this.#pool.on('connect', (client) => this.#control(client))
    this.storage = createKyselyStorageWith({ dialect: postgres({ pool: this.#pool, listen: false }), fences })
  }

  /** Runs until the first message is about to be sent. */
  play<T>(work: (storage: KyselyStorage) => Promise<T>): Promise<T> {
    this.#isPlaying = true
    return work(this.storage).finally(() => {
      this.#isPlaying = false
      this.#changed()
    })
  }

  takeTurn(): void {
    const goOn = this.#goOn
    this.#goOn = null
    goOn?.()
  }

  /** Lets everything through from here on. */
  letGo(): void {
    this.#isPlaying = false
    this.takeTurn()
  }

  /** Resolves when it waits for its turn or is done, or when `isBlocked` says that it waits for another session. */
  async settle(isBlocked: (pid: number) => Promise<boolean>): Promise<void> {
    while (this.#isPlaying && this.#goOn === null) {
      const isLate = await new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => resolve(true), 2)
        this.#changed = () => {
          clearTimeout(timer)
          resolve(false)
        }
      })
      if (isLate && this.#isPlaying && this.#goOn === null && (await isBlocked(this.#pid))) return
    }
  }

  async close(): Promise<void> {
    await this.storage.close()
    await this.#pool.end()
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#goOn = resolve
      this.#changed()
    })
  }

  async #send({ pid, text, query }: Message): Promise<unknown> {
    if (!this.#isPlaying) return query()
    this.#pid = pid
    if (/^(begin|start|set|rollback)/i.test(text)) {
      this.#transaction = /^rollback/i.test(text) ? null : 'new'
      return query()
    }
    const isCommit = /^commit/i.test(text)
    if (isCommit || this.#transaction !== 'started') await this.#turn()
    if (this.#transaction === null && !/^select/i.test(text)) return this.#alone(query)
    if (this.#transaction !== null) this.#transaction = isCommit ? null : 'started'
    return query()
  }

  /** A statement without a transaction has one too, from its start to its end. */
  async #alone(query: Message['query']): Promise<unknown> {
    await query('begin')
    let result: unknown
    try {
      result = await query()
    } catch (error) {
      await query('rollback')
      throw error
    }
    if (this.#isPlaying) await this.#turn()
    await query('commit')
    return result
  }

  #control(client: pg.PoolClient): void {
    const send = client.query.bind(client) as (query: Query, values?: unknown) => Promise<unknown>
    const { processID: pid } = client as unknown as { readonly processID: number }
    const query = (given: Query, values?: unknown) => {
      const text = waitingLong(this.#mutate(typeof given === 'string' ? given : given.text))
      const own = typeof given === 'string' ? text : { ...given, text }
      const note = (error: { readonly code?: string }) => {
        this.errors.push(error.code ?? String(error))
        throw error
      }
      return this.#send({ pid, text, query: (other) => (other ? send(other) : send(own, values)).catch(note) })
    }
    Object.assign(client, { query })
  }
}

/** A turn of somebody else takes longer than a commit waits, and it is the waiting that is looked at. */
function waitingLong(text: string): string {
  const told = text.replace(/set local lock_timeout = \d+/, "set local lock_timeout = '1min'")
  return told.replace(
    /set_config\('lock_timeout', (.+?), true\)/,
    "set_config('lock_timeout', coalesce('1min', $1), true)",
  )
}

/** Has a new client of a pool send its statements so. */
export function waitLong(client: pg.PoolClient): void {
  const send = client.query.bind(client) as (query: Query, values?: unknown) => Promise<unknown>
  const query = (given: Query, values?: unknown) =>
    send(typeof given === 'string' ? waitingLong(given) : { ...given, text: waitingLong(given.text) }, values)
  Object.assign(client, { query })
}

type Query = string | { readonly text: string }

interface Message {
  readonly pid: number
  readonly text: string
  /** Sends it, or this instead of it. */
  readonly query: (other?: string) => Promise<unknown>
}
