import type { Engine } from '../engine'
import { HistoryRequiredError, isEnded, NotFoundError, type OptionNames, refuseUnknownOptions } from '../base'
import { capability, type EventRecord, type RunRecord } from '../port'
import { isId, refuseBadSeq } from './runs'
import { type StoredEvent, toStoredEvent } from '../job'
import type { Look, PendingLook, TailReader } from './tail-reader'

/** From where a run is followed, and until when. */
export interface SubscribeOptions {
  /** The `seq` of the last event seen; what comes after it is wanted. Default 0: everything. */
  readonly after?: number | undefined
  /** Ends the subscription with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/** The events of a run, also for `for await` where the platform's streams have none. */
export type EventStream = ReadableStream<StoredEvent> & AsyncIterable<StoredEvent>

/** Following runs. */
export interface RunSubscriptions {
  /**
   * The stored events of a run, then those that come, once each and in order, wherever the run is executed. Ends with
   * the run. Needs `withLogPersistence()`.
   */
  subscribe(id: string, options?: SubscribeOptions): EventStream
}

export interface RunSubscriptionsParams {
  readonly engine: Engine
  readonly tails: TailReader
  /** Everything is limited to this tenant. */
  readonly tenant?: string | undefined
}

const SUBSCRIBE_OPTIONS: OptionNames<SubscribeOptions> = { after: true, signal: true }

export function createSubscriptions({ engine, tails, tenant }: RunSubscriptionsParams): RunSubscriptions {
  return {
    subscribe(id, options = {}) {
      refuseUnknownOptions('subscribe()', options, SUBSCRIBE_OPTIONS)
      const { after = 0, signal } = options
      capability(engine.storage, 'events', 'subscribe()')
      refuseBadSeq(after)
      return toStream(new Subscription({ engine, tails, tenant, id, after, signal }))
    },
  }
}

/** Nothing is read before somebody reads, and a page at most before somebody reads on. */
function toStream(subscription: Subscription): EventStream {
  const stream = new ReadableStream<StoredEvent>(
    {
      async pull(controller) {
        const event = await subscription.next()
        if (event !== null) controller.enqueue(event)
        if (event === null || subscription.isOver()) controller.close()
      },
      cancel: () => subscription.cancel(),
    },
    { highWaterMark: 0 },
  )
  if (typeof (stream as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === 'function') {
    return stream as EventStream
  }
  return Object.assign(stream, { [Symbol.asyncIterator]: () => iterate(stream) })
}

async function* iterate<T>(stream: ReadableStream<T>): AsyncGenerator<T, void, void> {
  const reader = stream.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
  } finally {
    // A stream that failed has told its error already.
    await reader.cancel().catch(() => {})
    reader.releaseLock()
  }
}

interface SubscriptionParams extends RunSubscriptionsParams, Pick<SubscribeOptions, 'signal'> {
  readonly id: string
  readonly after: number
}

/** One reader of one run: where it stands, and what is left of the page it got last. */
class Subscription {
  readonly #params: SubscriptionParams
  #run: RunRecord | null = null
  #after: number
  #page: Iterator<EventRecord> = [].values()
  #last: Look | null = null
  #pending: PendingLook | null = null

  constructor(params: SubscriptionParams) {
    this.#params = params
    this.#after = params.after
  }

  /** The next event, or `null` when there will be none. */
  async next(): Promise<StoredEvent | null> {
    for (;;) {
      this.#params.signal?.throwIfAborted()
      const { value, done } = this.#page.next()
      if (done !== true && this.#run !== null) {
        this.#after = value.seq
        return toStoredEvent(value, this.#run)
      }
      if (this.isOver()) return null
      const look = await this.#look()
      if (look === null) {
        if (this.#run === null) throw NotFoundError.run(String(this.#params.id))
        return null
      }
      this.#run ??= this.#accept(look)
      this.#requireHistory(look)
      this.#last = look
      this.#page = look.events.values()
      if (look.events.length === 0) this.#after = look.upTo
    }
  }

  /** The run had ended when it was last looked at, and everything up to its end was handed on. */
  isOver(): boolean {
    return this.#last !== null && isEnded(this.#last.status) && this.#after >= this.#last.lastSeq
  }

  cancel(): void {
    this.#pending?.leave(null)
  }

  async #look(): Promise<Look | null> {
    const { tails, id, signal } = this.#params
    if (!isId(id)) return null
    const isBehind = this.#last !== null && this.#after < this.#last.lastSeq
    const pending = tails.look({ runId: id, after: this.#after, isBehind, withRun: this.#run === null })
    const onAbort = () => pending.leave(signal?.reason)
    this.#pending = pending
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      return await pending.found
    } finally {
      this.#pending = null
      signal?.removeEventListener('abort', onAbort)
    }
  }

  #accept({ run }: Look): RunRecord {
    const { id, tenant } = this.#params
    if (run === null || (tenant !== undefined && run.tenant !== tenant)) throw NotFoundError.run(id)
    return run
  }

  /** A view that would show nothing, and not say why, is refused; also when that turns out at the end only. */
  #requireHistory({ status, lastSeq }: Look): void {
    if (lastSeq > 0 || (!isEnded(status) && this.#params.engine.plugins.recordsEvents())) return
    throw new HistoryRequiredError(`Following run ${this.#params.id}`)
  }
}
