import { InvalidOptionError } from './errors'
import { guarded } from './guarded'

/** Which events a listener takes is known by the type it is kept under. */
type Listener = (event: never) => unknown

export interface ListenersParams<TType extends string> {
  readonly types: readonly TType[]
  /** Behind the name of an event, in messages. */
  readonly whose?: string
  readonly onError: (error: unknown, type: TType) => void
}

/** Who listens to which events. A listener that throws or rejects disturbs nobody. */
export class Listeners<TType extends string> {
  readonly #params: ListenersParams<TType>
  readonly #byType = new Map<TType, readonly Listener[]>()

  constructor(params: ListenersParams<TType>) {
    this.#params = params
  }

  add(type: TType, listener: Listener): () => void {
    const { types, whose = '' } = this.#params
    if (!types.includes(type)) throw new InvalidOptionError(`There is no event "${type}"${whose}.`)
    if (typeof listener !== 'function') throw new InvalidOptionError(`A listener of "${type}" must be a function.`)
    // Of its own, so that the same function can listen twice.
    const added: Listener = (event) => listener(event)
    this.#byType.set(type, [...this.#of(type), added])
    return () => {
      this.#byType.set(
        type,
        this.#of(type).filter((each) => each !== added),
      )
    }
  }

  hears(type: TType): boolean {
    return this.#of(type).length > 0
  }

  tell(type: TType, event: unknown): void {
    for (const listener of this.#of(type)) {
      guarded(
        () => listener(event as never),
        (error) => this.#params.onError(error, type),
      )
    }
  }

  #of(type: TType): readonly Listener[] {
    return this.#byType.get(type) ?? NOBODY
  }
}

const NOBODY: readonly Listener[] = []
