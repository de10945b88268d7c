import type { CtxCall } from './call'
import { decodeValue, encodeValue, handled, InvalidOptionError, type OptionNames, refuseUnknownOptions } from '../base'
import { unlessAborted } from './interruption'
import type { StreamBody, StreamOptions } from '../job'
import { idsOf, startedWrite } from './row'
import { runStep, type StepCall } from './run'
import { refusingInTurn } from './tools'

const STREAM_OPTIONS: OptionNames<StreamOptions> = { retry: true, timeout: true }

const MAX_CHUNK_BYTES = 256 * 1024

/** In the place of a checkpoint: an earlier start of the stream has emitted something. */
const HAS_CHUNKS = '{"chunks":true}'

export interface StreamParams extends CtxCall {
  readonly options: StreamOptions
  readonly body: StreamBody<unknown>
}

/** `ctx.stream`: a step that tells what it does while it does it. */
export function streamStep<T>({ options, body, ...ctxCall }: StreamParams): Promise<T> {
  refuseUnknownOptions(`ctx.stream("${ctxCall.name}")`, options, STREAM_OPTIONS)
  const { retry, timeout } = options
  return runStep({
    ...ctxCall,
    kind: 'stream',
    options: { retry, timeout },
    async body(call, { save: _save, checkpoint: _checkpoint, ...tools }) {
      restart(call)
      const stream = new Stream(call, tools.signal)
      const inTurn = refusingInTurn(call.scope)
      try {
        const value = await body((chunk) => handled(inTurn(stream.emit(chunk))), tools)
        stream.throwRefused()
        return value
      } finally {
        stream.isOpen = false
      }
    },
  })
}

/** Only the chunks after it count. */
function restart(call: StepCall): void {
  if (call.checkpoint !== HAS_CHUNKS) return
  const { writer, engine } = call.scope
  const event = { type: 'step:restart', ...idsOf(call) } as const
  writer.restart(event, call.rowId)
  engine.events.emit(event)
}

/** The chunks of one start. */
class Stream {
  readonly #call: StepCall
  readonly #signal: AbortSignal
  #refused: { readonly error: unknown } | null = null
  #isMarked = false
  isOpen = true

  constructor(call: StepCall, signal: AbortSignal) {
    this.#call = call
    this.#signal = signal
  }

  async emit(chunk: unknown): Promise<void> {
    const call = this.#call
    const { writer, engine } = call.scope
    if (!this.isOpen || !call.isOpen) {
      throw new InvalidOptionError(`emit() of step "${call.name}" was called after its body had ended.`)
    }
    if (this.#signal.aborted) throw this.#refuse(this.#signal.reason)
    const text = this.#encode(chunk)
    call.checkpoint = HAS_CHUNKS
    const event = { type: 'step:chunk', ...idsOf(call), chunk: decodeValue(text) } as const
    // Of its own for each: what a listener does to it must not be what is stored.
    const shown = engine.events.hears('step:chunk') ? decodeValue(text) : undefined
    engine.events.emit({ ...event, chunk: shown })
    const row = this.#isMarked ? null : startedWrite(call)
    this.#isMarked = true
    await unlessAborted(this.#signal, writer.chunk({ event, stepId: call.rowId, length: text?.length ?? 0, row }))
  }

  /** Nobody may have waited for the refusal, and a stream must not end well with a hole in it. */
  throwRefused(): void {
    if (this.#refused !== null) throw this.#refused.error
  }

  #encode(chunk: unknown): string | null {
    try {
      return encodeValue(chunk, `A chunk of step "${this.#call.name}"`, MAX_CHUNK_BYTES)
    } catch (error) {
      throw this.#refuse(error)
    }
  }

  #refuse(error: unknown): unknown {
    this.#refused ??= { error }
    return error
  }
}
