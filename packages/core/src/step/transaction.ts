import { capability, type TransactionStorage } from '../port'
import type { CtxCall } from './call'
import { decodeValue, InvalidOptionError, type OptionNames, refuseUnknownOptions } from '../base'
import type { TransactionBody, TransactionOptions } from '../job'
import { runStep, type StepCall, type StoredResult } from './run'
import { refuseIfOver, TransactionTry } from './transaction-try'
import { pauseAfterTrouble } from '../engine'

const TRANSACTION_OPTIONS: OptionNames<TransactionOptions> = { retry: true, timeout: true }

const TIMEOUT_MS = 5000
/** Platforms fire timers that are longer at once, and servers know no longer ones. */
const LONGEST_MS = 2 ** 31 - 1

export interface TransactionParams extends CtxCall {
  readonly options: TransactionOptions
  readonly body: TransactionBody<unknown, never>
}

/** What one try needs. */
export interface AskedTransaction {
  readonly call: StepCall
  readonly storage: TransactionStorage
  readonly timeoutMs: number
  readonly body: (transaction: unknown) => unknown
  /** Without what else the run has to store. */
  readonly isAlone: boolean
}

/** `ctx.transaction`: the rows of the body and the result of the step in one transaction. */
export function transactionStep<T>({ options, body, ...ctxCall }: TransactionParams): Promise<T> {
  const { scope, name } = ctxCall
  const what = `ctx.transaction("${name}")`
  refuseUnknownOptions(what, options, TRANSACTION_OPTIONS)
  const { retry, timeout: timeoutMs = TIMEOUT_MS } = options
  if (!(typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= LONGEST_MS)) {
    throw new InvalidOptionError(
      `The timeout of ${what} must be more than 0 ms and at most ${LONGEST_MS} ms, not ${String(timeoutMs)}.`,
    )
  }
  const storage = capability(scope.engine.storage, 'transaction', what)
  return runStep({
    ...ctxCall,
    kind: 'transaction',
    options: { retry },
    perform(call, { save: _save, checkpoint: _checkpoint, ...tools }) {
      const run = body as TransactionBody<unknown, unknown>
      return storeOnce({ call, storage, timeoutMs, body: (transaction) => run(transaction, tools), isAlone: false })
    },
  })
}

/** A plugin may ask for another try while one is in progress, or after it: what is stored is stored. */
async function storeOnce(asked: AskedTransaction): Promise<unknown> {
  const { call } = asked
  const work = call.stored === null ? untilDecided(asked) : call.stored.then((stored) => stored ?? untilDecided(asked))
  call.stored = work.catch(() => null)
  const { row } = await work
  return decodeValue(row.output)
}

/** Trouble of the storage is no failure of the step: it is tried again until the execution is over. */
async function untilDecided(asked: AskedTransaction): Promise<StoredResult> {
  const { scope } = asked.call
  let { isAlone } = asked
  for (let tries = 1; ; tries++) {
    // A database in the process answers within the turn: a row of transactions would hold up the timers.
    await scope.engine.breathe()
    refuseIfOver(asked.call)
    const came = await scope.writer.exclusively((take) => new TransactionTry({ ...asked, isAlone }, take).run())
    if (typeof came === 'object') return came
    if (came === 'later') await pauseAfterTrouble(scope, tries)
    // What went with it goes by itself first: only the guilty one is refused.
    else isAlone = true
  }
}
