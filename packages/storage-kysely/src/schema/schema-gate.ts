import { SchemaTooNewError, StorageError } from '@coji/durably-core/storage'
import { checkSchema } from './migrate'
import type { Reader } from '../read'
import type { SqlContext } from '../statement'

/** What was found is believed for so long. */
const TRUST_MS = 60_000

interface SchemaGateParams {
  readonly context: SqlContext
  readonly monotonic: () => number
}

/**
 * Keeps this code from writing to tables that it no longer understands. It looks before the first write and again after
 * a minute, so that writes cost nothing, also those of an instance that has no worker. What a holder writes for its run
 * passes: the run ends under the code that began it.
 */
export class SchemaGate {
  readonly #params: SchemaGateParams
  #lookedAt = Number.NEGATIVE_INFINITY
  #refusal: SchemaTooNewError | null = null
  #looking: Promise<void> | null = null

  constructor(params: SchemaGateParams) {
    this.#params = params
  }

  /** Throws, or gives something to wait for when it is time to look. */
  pass(reader: Reader): Promise<void> | undefined {
    if (this.#params.monotonic() - this.#lookedAt >= TRUST_MS) return this.#lookOnce(reader)
    if (this.#refusal !== null) throw this.#refusal
    return undefined
  }

  /** Within a transaction, which is looked at on its own connection. */
  async passWithin(reader: Reader): Promise<void> {
    if (this.#params.monotonic() - this.#lookedAt >= TRUST_MS) await this.look(reader)
    else await this.pass(reader)
  }

  look(reader: Reader): Promise<void> {
    return this.noting(checkSchema(this.#params.context, reader))
  }

  /** What is missing may be there in a moment; what is too new stays so. */
  async noting(work: Promise<void>): Promise<void> {
    try {
      await work
      this.#note(null)
    } catch (error) {
      if (error instanceof SchemaTooNewError) this.#note(error)
      throw error
    }
  }

  #lookOnce(reader: Reader): Promise<void> {
    this.#looking ??= this.look(reader)
      .catch((error: unknown) => {
        throw error instanceof StorageError ? ofTheLook(error) : error
      })
      .finally(() => {
        this.#looking = null
      })
    return this.#looking
  }

  #note(refusal: SchemaTooNewError | null): void {
    this.#lookedAt = this.#params.monotonic()
    this.#refusal = refusal
  }
}

/** Whatever became of the look, the write that waits for it was not sent. */
function ofTheLook({ code, message, cause }: StorageError): StorageError {
  return new StorageError(code, message, { cause, mayHaveArrived: false })
}
