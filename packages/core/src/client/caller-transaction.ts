import type { Engine } from '../engine'
import { ClosedError, InvalidOptionError } from '../base'
import { capability, type EnqueueAnswer, type NewRun } from '../port'

/** The transaction that all of them ask for, or none of them. */
export function commonTransaction(asked: readonly unknown[]): object | null {
  const [first] = asked
  if (asked.some((each) => each !== first)) {
    throw new InvalidOptionError('The runs of one batch are created in one transaction: give all of them the same one.')
  }
  if (first === undefined) return null
  if (typeof first === 'object' && first !== null) return first
  throw new InvalidOptionError('transaction must be the one that the database library gave you.')
}

/** Creates runs in a transaction of the caller. They exist when it is committed, and never did when it is not. */
export function enqueueIn(
  { storage }: Engine,
  transaction: object,
  runs: readonly NewRun[],
): Promise<readonly EnqueueAnswer[]> {
  return capability(storage, 'transaction', 'trigger({ transaction })').enqueue(transaction, runs)
}

export interface RunTransactionParams<T> {
  readonly engine: Engine
  readonly body: (transaction: unknown) => Promise<T>
  readonly isClosed: () => boolean
  readonly onCommitted: () => void
}

/** `durably.transaction()`: what is triggered in it is told, and a worker woken, when it has been committed. */
export async function runTransaction<T>(params: RunTransactionParams<T>): Promise<T> {
  const { engine, body, isClosed, onCommitted } = params
  if (isClosed()) throw new ClosedError()
  if (typeof body !== 'function') throw new InvalidOptionError('transaction() needs a function.')
  const told: (() => void)[] = []
  const value = await capability(engine.storage, 'transaction', 'transaction()').run(async (transaction) => {
    if (typeof transaction === 'object' && transaction !== null) engine.openTransactions.set(transaction, told)
    return body(transaction)
  })
  for (const tell of told) tell()
  onCommitted()
  return value
}
