import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Far longer than the patience of a test. */
const SCRIPT_TIMEOUT_MS = 3_600_000

const GONE = 'Firefox has ended.'

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
}

/** One tab of a Firefox. */
export interface FirefoxTab {
  /** Calls a function of the page, which gets this value, and waits for what it gives. */
  evaluate<T, A>(fn: (given: A) => T | Promise<T>, given?: A): Promise<T>
  goto(url: string): Promise<void>
  close(): Promise<void>
}

/** Firefox's own remote protocol: messages with their length before them, one answer for each. */
export class Marionette {
  readonly #socket: Socket
  readonly #waiting = new Map<number, Waiting>()
  /** The window that it came with, which stays open. */
  #first = ''
  #received = Buffer.alloc(0)
  #count = 0
  /** Commands are for the tab that was chosen last, so only one tab is spoken to at a time. */
  #turn: Promise<unknown> = Promise.resolve()

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', () => {})
    socket.on('close', () => this.#giveUp())
  }

  static async connect(port: number): Promise<Marionette> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    const marionette = new Marionette(socket)
    await marionette.#send('WebDriver:NewSession', {})
    await marionette.#send('WebDriver:SetTimeouts', { script: SCRIPT_TIMEOUT_MS, pageLoad: SCRIPT_TIMEOUT_MS })
    const { value } = (await marionette.#send('WebDriver:GetWindowHandle', {})) as { value: string }
    marionette.#first = value
    return marionette
  }

  async open(url: string): Promise<FirefoxTab> {
    const { handle } = await this.#alone(async () => {
      // The one that was spoken to last may have closed.
      await this.#send('WebDriver:SwitchToWindow', { handle: this.#first })
      return (await this.#send('WebDriver:NewWindow', { type: 'window' })) as { handle: string }
    })
    const inTab = (command: string, parameters: object = {}) =>
      this.#alone(async () => {
        await this.#send('WebDriver:SwitchToWindow', { handle })
        return this.#send(command, parameters)
      })
    const tab: FirefoxTab = {
      evaluate: async (fn, given) => {
        const answer = (await inTab('WebDriver:ExecuteAsyncScript', {
          script: scriptOf(fn),
          args: [given ?? null],
        })) as {
          value: { ok: boolean; value: never; error: string }
        }
        const { ok, value, error } = answer.value
        if (!ok) throw new Error(`In Firefox: ${error}`)
        return value
      },
      goto: async (to) => void (await inTab('WebDriver:Navigate', { url: to })),
      close: async () => void (await inTab('WebDriver:CloseWindow')),
    }
    await tab.goto(url)
    return tab
  }

  close(): void {
    this.#socket.destroy()
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => {})
    return done
  }

  #send(command: string, parameters: object): Promise<unknown> {
    if (this.#socket.destroyed) return Promise.reject(new Error(GONE))
    this.#count += 1
    const id = this.#count
    const message = JSON.stringify([0, id, command, parameters])
    this.#socket.write(`${Buffer.byteLength(message)}:${message}`)
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject: (error) => reject(new Error(`${command}: ${error.message}`)) })
    })
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk])
    for (;;) {
      const colon = this.#received.indexOf(':')
      const end = colon + 1 + Number(this.#received.subarray(0, colon).toString())
      if (colon === -1 || this.#received.length < end) return
      this.#hear(JSON.parse(this.#received.subarray(colon + 1, end).toString()))
      this.#received = this.#received.subarray(end)
    }
  }

  /** Anything else is its greeting. */
  #hear(message: unknown): void {
    if (!Array.isArray(message)) return
    const [, id, error, result] = message as [number, number, { message: string } | null, unknown]
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === null) waiting?.resolve(result)
    else waiting?.reject(new Error(error.message))
  }

  #giveUp(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error(GONE))
    this.#waiting.clear()
  }
}

/** The function goes to the page as its text. */
function scriptOf(fn: (given: never) => unknown): string {
  return `
    const [given, answer] = arguments
    new Promise((resolve) => resolve((${fn.toString()})(given))).then(
      (value) => answer({ ok: true, value }),
      (error) => answer({ ok: false, error: String(error) + ' ' + String(error?.stack) }),
    )`
}
