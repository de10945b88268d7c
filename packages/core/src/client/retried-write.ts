import { ConflictError, DurablyError, pause, StorageError, UnknownOutcomeError } from '../base'
import { type Engine, troubleDelayMs } from '../engine'

const TRIES = 4

/** For a write whose rows have their ids before they are sent: what may or may not have arrived can be sent again. */
export function retriedWrite<T>(engine: Engine, what: string, write: () => Promise<T>): Promise<T> {
  let mayBeThere = false
  const send = (tries: number) => write().catch((error: unknown) => sendAgain(error, tries))
  async function sendAgain(error: unknown, tries: number): Promise<T> {
    // An answer about these very rows.
    if (error instanceof ConflictError) throw error
    // What says that nothing was written is worth telling only if it holds for every try.
    const passes = !(error instanceof DurablyError) || error.code === 'STORAGE_UNAVAILABLE'
    mayBeThere ||= passes && !(error instanceof StorageError && !error.mayHaveArrived)
    if (!mayBeThere && (!passes || tries === TRIES)) throw error
    if (tries === TRIES) throw new UnknownOutcomeError(what, { cause: error })
    await pause(engine.environment.clock, troubleDelayMs(engine, tries))
    return send(tries + 1)
  }
  return send(1)
}
