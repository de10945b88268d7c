import type { Settings } from './options'

const ENCODER = new TextEncoder()
const SIGN_OF_LIFE = ENCODER.encode(':\n\n')
/** So many signs of life that nobody read, and the reader is let go. It comes back to where it stood. */
const MOST_UNREAD = 4

/** What a stream tells, piece by piece. */
export interface Source {
  /** The next piece of text; `null` when there will be none. */
  next(): Promise<string | null>
  /** Nobody reads any more. */
  leave(): void
  /** Whether it may still be read; asked now and then. */
  isAllowed(): Promise<boolean>
}

export const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Proxies that gather an answer before they pass it on.
  'x-accel-buffering': 'no',
} as const

interface StreamsOptions extends Pick<Settings, 'keepAliveMs' | 'recheckMs'> {
  /** What went wrong with a stream. */
  readonly report: (error: unknown) => void
}

/** All streams of a server: one timer for their signs of life. Nothing is read for who does not read. */
export class Streams {
  readonly #settings: StreamsOptions
  readonly #open = new Set<OpenStream>()
  #timer: ReturnType<typeof setInterval> | null = null

  constructor(settings: StreamsOptions) {
    this.#settings = settings
  }

  get size(): number {
    return this.#open.size
  }

  open(source: Source): Response {
    const stream = new OpenStream(source, { ...this.#settings, onClosed: () => this.#leave(stream) })
    this.#open.add(stream)
    this.#timer ??= setInterval(() => this.#beat(), this.#settings.keepAliveMs)
    return new Response(stream.body, { headers: STREAM_HEADERS })
  }

  #beat(): void {
    for (const stream of this.#open) stream.beat()
  }

  #leave(stream: OpenStream): void {
    this.#open.delete(stream)
    if (this.#open.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}

interface OpenStreamOptions extends StreamsOptions {
  readonly onClosed: () => void
}

class OpenStream {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>
  readonly #source: Source
  readonly #options: OpenStreamOptions
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | null = null
  #unread = 0
  #sinceCheckMs = 0

  constructor(source: Source, options: OpenStreamOptions) {
    this.#source = source
    this.#options = options
    this.body = new ReadableStream({
      start: (controller) => {
        this.#controller = controller
        // The headers of an answer are often sent with its first piece.
        controller.enqueue(SIGN_OF_LIFE)
      },
      pull: () => this.#tellNext(),
      cancel: () => this.#end(),
    })
  }

  beat(): void {
    if ((this.#controller?.desiredSize ?? 0) > 0) {
      this.#unread = 0
      this.#controller?.enqueue(SIGN_OF_LIFE)
    } else {
      this.#unread += 1
      if (this.#unread >= MOST_UNREAD) this.#close()
    }
    this.#sinceCheckMs += this.#options.keepAliveMs
    if (this.#sinceCheckMs < this.#options.recheckMs) return
    this.#sinceCheckMs = 0
    void this.#check()
  }

  /** Whatever goes wrong ends the stream: its reader comes back, and is told then. */
  async #tellNext(): Promise<void> {
    this.#unread = 0
    const piece = await this.#source.next().catch((error: unknown) => {
      this.#options.report(error)
      return null
    })
    if (piece === null) this.#close()
    else this.#controller?.enqueue(ENCODER.encode(piece))
  }

  async #check(): Promise<void> {
    const isAllowed = await this.#source.isAllowed().catch((error: unknown) => {
      this.#options.report(error)
      return false
    })
    if (!isAllowed) this.#close()
  }

  #close(): void {
    const controller = this.#controller
    this.#end()
    controller?.close()
  }

  #end(): void {
    if (this.#controller === null) return
    this.#controller = null
    this.#source.leave()
    this.#options.onClosed()
  }
}
