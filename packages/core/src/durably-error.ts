import { brandErrors } from './error-brand'

/** The base of every error durably throws. `code` is stable; the message says what, which id and what to do. */
export class DurablyError extends Error {
  /** What other copies of this package know the class by. Subclasses of the application inherit it. */
  static readonly 'durably:error': { readonly kind: string; readonly isPermanent?: boolean } = { kind: 'DurablyError' }
  static {
    brandErrors(DurablyError)
  }
  override readonly name: string = 'DurablyError'
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
