import type { Hint } from '@coji/durably-core'
import { CompiledQuery } from 'kysely'
import type { Notifications } from './drivers/hooks'
import type { SqlContext } from './statement'
import type { Watchers } from './watch'

/** How long hints gather: a process sends twenty notifications a second at most. */
const GATHER_MS = 50
/** Postgres takes less than 8,000 bytes. */
const RUNS_PER_NOTIFICATION = 200
/** What waits to be sent; more is left to polling. */
const MOST_RUNS = 1000

/** `durably_enqueue` of the migrations sends one as well. */
interface Message {
  readonly from: string
  readonly due: boolean
  readonly runs: readonly string[]
}

/** What a transaction of the application sends when it is committed; it reaches the process itself as well. */
export function notifyDue({ dialect, prefix }: SqlContext): CompiledQuery | null {
  if (dialect.name === 'sqlite') return null
  const message: Message = { from: '', due: true, runs: [] }
  // As text: a library of the application may not know what to make of nothing.
  return CompiledQuery.raw('select cast(pg_notify($1, $2) as text)', [channelOf(prefix), JSON.stringify(message)])
}

/** Instances with the same tables share a channel of the database. */
export function channelOf(tablePrefix: string): string {
  return `durably:${tablePrefix}`
}

interface HintRelayParams {
  readonly notifications: Notifications
  readonly channel: string
  readonly watchers: Watchers
}

/** Passes the hints of this process on to the others, a little later and many in one, and theirs to the watchers. */
export class HintRelay {
  readonly #params: HintRelayParams
  readonly #id = crypto.randomUUID()
  readonly #runs = new Set<string>()
  #isDue = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #stop: (() => Promise<void>) | null = null
  #resting: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(params: HintRelayParams) {
    this.#params = params
  }

  /** Listens from the first call on. */
  listen(): void {
    if (this.#stop !== null || this.#isClosed) return
    const { notifications, channel, watchers } = this.#params
    this.#stop = notifications.listen(channel, {
      onNotification: (payload) => this.#receive(payload),
      onDoubt: () => watchers.tell({ kind: 'runs' }),
    })
  }

  /** Until the next call of `listen()`. */
  rest(): void {
    const stop = this.#stop
    this.#stop = null
    if (stop !== null) this.#resting = stop().catch(() => {})
  }

  pass(hint: Hint): void {
    if (this.#isClosed) return
    if (hint.kind === 'runs') this.#isDue = true
    else if (this.#runs.size < MOST_RUNS) this.#runs.add(hint.runId)
    this.#timer ??= setTimeout(() => void this.#send(), GATHER_MS)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    // What became due a moment before the end should not have to wait for a poll.
    if (this.#timer !== undefined && this.#isDue) await this.#send()
    await this.#stop?.()
    await this.#resting
  }

  /** One message; what does not fit into it has to wait for the next. */
  async #send(): Promise<void> {
    const { notifications, channel } = this.#params
    const runs = [...this.#runs].slice(0, RUNS_PER_NOTIFICATION)
    const message: Message = { from: this.#id, due: this.#isDue, runs }
    for (const runId of runs) this.#runs.delete(runId)
    this.#isDue = false
    const hasMore = this.#runs.size > 0 && !this.#isClosed
    this.#timer = hasMore ? setTimeout(() => void this.#send(), GATHER_MS) : undefined
    // A lost hint costs a poll interval.
    await notifications.send(channel, JSON.stringify(message)).catch(() => {})
  }

  #receive(payload: string): void {
    const message = parse(payload)
    if (message === null || message.from === this.#id) return
    if (message.due) this.#params.watchers.tell({ kind: 'runs' })
    for (const runId of message.runs) this.#params.watchers.tell({ kind: 'run', runId })
  }
}

/** Anybody can send to the channel. */
function parse(payload: string): Message | null {
  try {
    const { from, due, runs } = JSON.parse(payload) as Partial<Message>
    return { from: String(from), due: due === true, runs: Array.isArray(runs) ? runs.map(String) : [] }
  } catch {
    return null
  }
}
