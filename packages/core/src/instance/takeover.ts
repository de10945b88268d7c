import type { Engine } from '../engine'

/** Code that is loaded anew may bring another copy of this package. */
const REGISTRY = Symbol.for('@coji/durably:sole-instances')

interface Instance {
  close(): Promise<void>
}

/** Of two instances of a process on one storage, where it may have only one, the newer closes the older. */
export class Takeover {
  readonly #self: Instance
  readonly #reportError: Engine['reportError']
  /** `null` where several are as good as one, and when this one is closed. */
  #name: string | null

  constructor({ storage, reportError }: Engine, close: () => Promise<void>) {
    this.#name = storage.soleInstance ?? null
    this.#self = { close }
    this.#reportError = reportError
  }

  /** Resolves when the older one is closed. */
  async take(): Promise<void> {
    if (this.#name === null) return
    const instances = registry()
    const older = instances.get(this.#name)
    instances.set(this.#name, this.#self)
    if (older === undefined || older === this.#self) return
    this.#reportError(new Error(closed(this.#name)), 'another instance')
    await older.close().catch((error: unknown) => this.#reportError(error, 'close of another instance'))
  }

  async before<T>(work: () => Promise<T>): Promise<T> {
    await this.take()
    return work()
  }

  /** This one is closed. */
  end(): void {
    if (this.#name !== null && registry().get(this.#name) === this.#self) registry().delete(this.#name)
    this.#name = null
  }
}

function closed(name: string): string {
  return (
    `Another instance on ${name} was open here, of code that was loaded before. It is closed. ` +
    'Where code is replaced while it runs (HMR), close it there: import.meta.hot.dispose(() => durably.close()).'
  )
}

function registry(): Map<string, Instance> {
  const place = globalThis as { [REGISTRY]?: Map<string, Instance> }
  place[REGISTRY] ??= new Map()
  return place[REGISTRY]
}
