import { brandErrors } from './error-brand'

/** The base of every error durably throws. `code` is stable; the message says what, which id and what to do. */
export class DurablyError extends Error {
  /** What other copies of this package know the class by. Subclasses of the application inherit it. */
  static readonly 'durably:error': { readonly kind: string; readonly isPermanent?: boolean } = { kind: 'DurablyError' }
  static {
    brandErrors(DurablyError)
  }
  /** That of the class, or what a subclass gives itself. */
  override readonly name: string
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target['durably:error'].kind
    this.code = code
  }
}

/** What is recorded of an error beside its message. */
export interface ErrorDetail {
  readonly name: string
  readonly code?: string
  readonly stack?: string
  /** The step the error came from, when it came from one. */
  readonly stepName?: string
  readonly issues?: readonly { readonly path: string; readonly message: string }[]
  /** Of an error of a step that is one of durably's own: its class, and what the class has of its own. */
  readonly own?: { readonly kind: string; readonly fields?: Readonly<Record<string, unknown>> }
  /** Of an error of a step after which trying again is useless. */
  readonly permanent?: true
}
