import type pg from 'pg'
import type { NotificationListener } from '../dialect'
import { keepAwake } from './keep-awake'

interface PostgresListenerParams {
  readonly connect: () => pg.Client
  readonly channel: string
  readonly listener: NotificationListener
}

const CHECK_MS = 10_000
const RECONNECT_MIN_MS = 100
const RECONNECT_MAX_MS = 5000

/**
 * A connection of its own that listens to one channel. A dead one may look alive for hours, so it is asked again and
 * again whether it still listens; at any doubt it is replaced, and somebody is told that notifications were missed.
 */
export class PostgresListener {
  readonly #params: PostgresListenerParams
  #client: pg.Client | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #isStopped = false

  constructor(params: PostgresListenerParams) {
    this.#params = params
  }

  start(): void {
    void this.#connect()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = null
    if (client !== null) await keepAwake(client.end().catch(() => {}))
  }

  async #connect(): Promise<void> {
    const { connect, channel, listener } = this.#params
    let client: pg.Client
    try {
      client = connect()
    } catch {
      this.#tryAgain()
      return
    }
    this.#client = client
    client.on('error', () => this.#replace(client))
    client.on('end', () => this.#replace(client))
    client.on('notification', ({ payload }) => listener.onNotification(payload ?? ''))
    try {
      await client.connect()
      letProcessEnd(client)
      await client.query(`listen ${client.escapeIdentifier(channel)}`)
      this.#failures = 0
      listener.onDoubt()
      this.#checkLater(client)
    } catch {
      this.#replace(client)
    }
  }

  #checkLater(client: pg.Client): void {
    this.#later(CHECK_MS, async () => {
      try {
        const { rows } = await client.query<{ readonly name: string }>('select pg_listening_channels() as name')
        if (rows.some(({ name }) => name === this.#params.channel)) this.#checkLater(client)
        else this.#replace(client)
      } catch {
        this.#replace(client)
      }
    })
  }

  #replace(client: pg.Client): void {
    if (this.#client !== client || this.#isStopped) return
    this.#client = null
    client.end().catch(() => {})
    this.#tryAgain()
  }

  #tryAgain(): void {
    this.#failures += 1
    const delayMs = Math.min(RECONNECT_MIN_MS * 2 ** Math.min(this.#failures, 10), RECONNECT_MAX_MS)
    this.#later(delayMs * (0.5 + Math.random() / 2), () => this.#connect())
  }

  #later(ms: number, work: () => Promise<void>): void {
    if (this.#isStopped) return
    clearTimeout(this.#timer)
    const timer = setTimeout(() => void work(), ms)
    this.#timer = timer
    timer.unref?.()
  }
}

/** Listening alone is no reason to stay. */
function letProcessEnd(client: pg.Client): void {
  const { connection } = client as unknown as { connection?: { stream?: { unref?(): void } } }
  connection?.stream?.unref?.()
}
