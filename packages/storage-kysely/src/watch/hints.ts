import type { Hint } from '@coji/durably-core/storage'
import { CompiledQuery } from 'kysely'
import type { Notifications } from '../dialect'
import type { SqlContext } from '../statement'
import type { Watchers } from './watch'

/**
 * How long hints gather after one was sent at once: a process sends some twenty notifications a second at most, and as many
 * more where urgent ones come between those of what has changed.
 */
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
  /** Runs that somebody wants cancelled. */
  readonly cancels: readonly string[]
}

/** What a transaction of the application sends when it is committed; it reaches the process itself as well. */
export function notifyDue({ dialect, prefix }: SqlContext): CompiledQuery | null {
  if (!dialect.isServer) return null
  const message: Message = { from: '', due: true, runs: [], cancels: [] }
  // As text: a library of the application may not know what to make of nothing.
  return CompiledQuery.raw('select cast(pg_notify($1, $2) as text)', [channelOf(prefix), JSON.stringify(message)])
}

/**
 * Instances with the same tables share a channel of the database. It does not name the schema: the same tables are reached
 * by the option and by the `search_path`, and a hint of tables in another schema costs a look.
 */
export function channelOf(tablePrefix: string): string {
  return `durably:${tablePrefix}`
}

interface HintRelayParams {
  readonly notifications: Notifications
  readonly channel: string
  readonly watchers: Watchers
}

/**
 * Passes the hints of this process on to the others, and theirs to the watchers. The first after a rest goes at once,
 * what follows soon gathers.
 */
export class HintRelay {
  readonly #params: HintRelayParams
  readonly #id = crypto.randomUUID()
  readonly #runs = new Set<string>()
  readonly #cancels = new Set<string>()
  #isDue = false
  #isSending = false
  /** Of the last message: somebody may wait for a run that is due or to be cancelled, not for what has changed. */
  #wasUrgent = false
  #gathering: ReturnType<typeof setTimeout> | undefined
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
    else if (hint.kind === 'cancel') this.#cancels.add(hint.runId)
    else if (this.#runs.size < MOST_RUNS) this.#runs.add(hint.runId)
    const isLate = hint.kind === 'run' || this.#wasUrgent
    if (this.#isSending || (this.#gathering !== undefined && isLate)) return
    this.#isSending = true
    // A write has several hints.
    queueMicrotask(() => {
      if (!this.#isClosed) void this.#send()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    // What became due a moment before the end should not have to wait for a poll.
    const isWaiting = this.#gathering !== undefined || this.#isSending
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    while (isWaiting && (this.#isDue || this.#cancels.size > 0)) await this.#send()
    await this.#stop?.()
    await this.#resting
  }

  /** One message; what does not fit into it has to wait for the next. */
  async #send(): Promise<void> {
    const { notifications, channel } = this.#params
    clearTimeout(this.#gathering)
    this.#isSending = false
    this.#gathering = undefined
    const cancels = take(this.#cancels, RUNS_PER_NOTIFICATION)
    const runs = take(this.#runs, RUNS_PER_NOTIFICATION - cancels.length)
    const message: Message = { from: this.#id, due: this.#isDue, runs, cancels }
    this.#isDue = false
    this.#wasUrgent = message.due || cancels.length > 0
    if (!message.due && runs.length === 0 && cancels.length === 0) return
    if (!this.#isClosed) this.#gathering = setTimeout(() => void this.#send(), GATHER_MS)
    // A lost hint costs a poll interval.
    await notifications.send(channel, JSON.stringify(message)).catch(() => {})
  }

  #receive(payload: string): void {
    const message = parse(payload)
    if (message === null || message.from === this.#id) return
    if (message.due) this.#params.watchers.tell({ kind: 'runs', isFromElsewhere: true })
    for (const runId of message.runs) this.#params.watchers.tell({ kind: 'run', runId })
    for (const runId of message.cancels) this.#params.watchers.tell({ kind: 'cancel', runId })
  }
}

function take(from: Set<string>, count: number): readonly string[] {
  const taken = [...from].slice(0, count)
  for (const one of taken) from.delete(one)
  return taken
}

/** Anybody can send to the channel, and processes of an older version leave out what they do not know. */
function parse(payload: string): Message | null {
  try {
    const { from, due, runs, cancels } = JSON.parse(payload) as Partial<Message>
    return { from: String(from), due: due === true, runs: textsIn(runs), cancels: textsIn(cancels) }
  } catch {
    return null
  }
}

function textsIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.map(String) : []
}
