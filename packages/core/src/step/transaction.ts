import { capability, type TransactionStorage, type RunCommit, type StepRecord } from '../port'
import type { CtxCall } from './call'
import {
  decodeValue,
  type OptionNames,
  refuseUnknownOptions,
  encodeValue,
  inTime,
  isRejection,
  requireDuration,
  StorageError,
} from '../base'
import type { TransactionBody, TransactionOptions, EventInput } from '../job'
import { runStep, type StepCall, type StoredResult, completion } from './run'
import { pauseAfterTrouble, askPatiently, reportTrouble } from '../engine'
import { unlessAborted } from './interruption'
import type { StepAnswer, Take, Taken } from '../commit'
import { toStepCommit } from './row'
import type { RecordedStep } from './scope'

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
  requireDuration(`The timeout of ${what}`, timeoutMs, LONGEST_MS)
  const storage = capability(scope.engine.storage, 'transaction', what)
  return runStep({
    ...ctxCall,
    kind: 'transaction',
    options: { retry },
    body(call, { save: _save, checkpoint: _checkpoint, ...tools }) {
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

/** How long a storage waits for a connection before a transaction begins. */
const CONNECTION_MS = 5000

interface Written {
  readonly taken: Taken
  readonly row: RecordedStep
  readonly event: EventInput | null
}

/** Nothing is stored, for a reason that passes, or for one that may lie with what went with it of others. */
export type Undone = 'later' | 'alone'

/** One transaction from its begin to the certainty of what became of it. */
export class TransactionTry {
  readonly #asked: AskedTransaction
  readonly #take: Take
  /** Events of runs that were triggered in it. */
  readonly #told: (() => void)[] = []
  #written: Written | null = null
  #bodyFailure: { readonly error: unknown } | null = null
  #isOver = false

  constructor(asked: AskedTransaction, take: Take) {
    this.#asked = asked
    this.#take = take
  }

  async run(): Promise<StoredResult | Undone> {
    const { call, storage, timeoutMs } = this.#asked
    const { engine } = call.scope
    refuseIfOver(call)
    try {
      const sent = storage.commitWith((transaction) => this.#inside(transaction), timeoutMs)
      const { answer } = await this.#unlessSilent(sent)
      engine.trouble = null
      this.#written?.taken.keep(answer)
    } catch (error) {
      this.#isOver = true
      return this.#afterTrouble(passes(error) ? error : (this.#bodyFailure?.error ?? error))
    }
    return this.#result()
  }

  async #inside(transaction: unknown): Promise<{ readonly commit: RunCommit; readonly value: null }> {
    const { call, body } = this.#asked
    const { scope, name } = call
    this.#refuseIfOver()
    if (typeof transaction === 'object' && transaction !== null) {
      scope.engine.openTransactions.set(transaction, this.#told)
    }
    try {
      const work = async () => scope.engine.bodyScope.run({ scope, stepName: name }, () => body(transaction))
      // What an aborted body still does is lost with its transaction, which must not stay open for it.
      const value = await unlessAborted(scope.interruption.signal, work())
      this.#refuseIfOver()
      const output = encodeValue(value, `The output of step "${name}"`)
      const event = completion(call, output)
      const { recorded, commit } = toStepCommit(call, 'completed', { output, event })
      const taken = this.#take(commit, this.#asked.isAlone)
      this.#written = { taken, row: recorded, event }
      return { commit: taken.commit, value: null }
    } catch (error) {
      this.#bodyFailure = { error }
      throw error
    }
  }

  #refuseIfOver(): void {
    refuseIfOver(this.#asked.call)
    if (this.#isOver) throw this.#asked.call.scope.interruption.cause()
  }

  /** Each wait of a transaction has its limit, but for the answer of the database: a connection can be half open. */
  #unlessSilent<T>(sent: Promise<T>): Promise<T> {
    const { call, timeoutMs } = this.#asked
    const { environment, options } = call.scope.engine
    const ms = CONNECTION_MS + timeoutMs + Math.round(options.leaseMs / 3)
    const error = () => new StorageError('STORAGE_UNAVAILABLE', `The transaction was not answered within ${ms} ms.`)
    return inTime({ clock: environment.clock, ms, error }, sent)
  }

  async #afterTrouble(error: unknown): Promise<StoredResult | Undone> {
    const { engine, interruption } = this.#asked.call.scope
    // The execution was over before the database had a place for the body, which has not begun.
    if (interruption.isCause(error)) throw error
    if (this.#bodyFailure !== null && !passes(error)) throw error
    if (isRefusal(error)) {
      const isSuspected = isRejection(error) && this.#written?.taken.isAlone === false
      this.#written?.taken.giveBack({ isNumberUsed: false, isSuspected })
      if (isSuspected) return 'alone'
      throw error
    }
    reportTrouble(engine, error, 'transaction')
    return this.#written === null ? 'later' : this.#learn(this.#written.taken)
  }

  /** It was on its way to be committed. Asked under the same number, the database decides whether it was. */
  async #learn(taken: Taken): Promise<StoredResult | Undone> {
    const { rowId, scope } = this.#asked.call
    const { engine, interruption, run } = scope
    const answer = await taken.settleNumber()
    if (!answer.kept) {
      taken.keep(answer)
      return this.#result()
    }
    try {
      const steps = await askPatiently({
        ...{ engine, interruption, during: 'read steps' },
        call: (storage) => storage.getSteps(run.id),
      })
      const isStored = steps.some(({ id, status }) => id === rowId && status === 'completed')
      if (!isStored) {
        taken.giveBack({ isNumberUsed: true })
        return 'later'
      }
      // The commit of nothing has created no runs, but the transaction has.
      taken.keep({ ...answer, children: childrenIn(taken.commit, steps) })
    } catch (error) {
      taken.drop()
      throw error
    }
    return this.#result()
  }

  async #result(): Promise<StoredResult> {
    const { interruption } = this.#asked.call.scope
    if (this.#written === null) throw interruption.cause()
    const { taken, row, event } = this.#written
    const answer: StepAnswer = await taken.answered
    if (!answer.kept) throw interruption.cause()
    for (const tell of this.#told) tell()
    return { row, event, seq: answer.eventSeq }
  }
}

/** The run of each step with a child: the one that was created, or the one that has its key. */
function childrenIn(commit: RunCommit, stored: readonly StepRecord[]): readonly string[] {
  const outputs = new Map(stored.map(({ id, output }) => [id, output]))
  return commit.steps.flatMap(({ id, child }) => (child === null ? [] : [String(decodeValue(outputs.get(id) ?? null))]))
}

/** Nobody waits for the result any more: the execution is over, or a plugin has gone on without it. */
export function refuseIfOver({ scope, isOpen }: StepCall): void {
  if (scope.interruption.reason() !== null || !isOpen) throw scope.interruption.cause()
}

/** The fault of this very transaction, which was rolled back. */
function isRefusal(error: unknown): boolean {
  return error instanceof StorageError && (error.code === 'STORAGE_REJECTED' || error.code === 'TRANSACTION_TIMEOUT')
}

function passes(error: unknown): boolean {
  return error instanceof StorageError && !isRefusal(error)
}
