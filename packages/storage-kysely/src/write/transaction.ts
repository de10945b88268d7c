import { StorageError, type TransactionStorage } from '@coji/durably-core/storage'
import { CompiledQuery, type Transaction } from 'kysely'
import type { CommitWriter } from './commit'
import type { Enqueuer } from './enqueue'
import { type Executor, type GivenTransaction, givenTransaction, ofKysely, within } from '../connection'
import type { SchemaGate } from '../schema'
import type { Watchers } from '../watch'
import type { SqlDialect } from '../dialect'
import type { SqlContext, StatementTarget } from '../statement'

interface TransactionParts {
  readonly dialect: SqlDialect
  readonly executor: Executor
  readonly commits: CommitWriter
  readonly enqueuer: Enqueuer
  readonly watchers: Watchers
  readonly gate: SchemaGate
  /** Sent with runs in a transaction of the application: it wakes workers once that is committed. */
  readonly notifyDue: CompiledQuery | null
  /** What has a long transaction left open by a server that would end it. */
  readonly keepOpen: (ms: number) => CompiledQuery | null
}

/** Thrown inside a transaction to take it back: the fence did not hold. */
class Refused<T> extends Error {
  readonly commit: Parameters<CommitWriter['lookUp']>[1]
  readonly value: T

  constructor(commit: Parameters<CommitWriter['lookUp']>[1], value: T) {
    super('The lease does not hold any more.')
    this.commit = commit
    this.value = value
  }
}

/** The port's group, and what has other things written in a transaction of the caller's. */
export interface Transactions<DB> {
  readonly storage: TransactionStorage<Transaction<DB>>
  readonly writeWithin: <T>(transaction: object, work: (target: StatementTarget) => Promise<T>) => Promise<T>
}

export function createTransactions<DB>(parts: TransactionParts): Transactions<DB> {
  const { dialect, executor, commits, enqueuer, watchers, gate, notifyDue, keepOpen } = parts
  // Inside, tables have durably's types; outside, those of the application. It is one connection.
  const forApplication = (trx: Transaction<unknown>) => trx as unknown as Transaction<DB>
  const hasEnqueued = new WeakSet<object>()
  const inTurn = createTurns()

  async function writeIn<T>(open: GivenTransaction, work: (target: StatementTarget) => Promise<T>): Promise<T> {
    const target = targetOf(open)
    // After a statement that failed Postgres answers nothing until the savepoint before it is back.
    const write = (list: readonly CompiledQuery[]) => inSavepoint(open, () => target.write(list))
    const answer = await executor.explained(
      inSavepoint(open, async () => {
        await gate.passWithin(target)
        return work({ read: target.read, write })
      }),
    )
    if (notifyDue !== null) await executor.explained(open.send(notifyDue))
    return answer
  }

  async function writeWithin<T>(trx: object, work: (target: StatementTarget) => Promise<T>): Promise<T> {
    const open = givenTransaction(trx, dialect)
    const answer = await inTurn(open, () => writeIn(open, work))
    hasEnqueued.add(trx)
    return answer
  }

  const storage: TransactionStorage<Transaction<DB>> = {
    async commitWith(body, timeoutMs) {
      type Value = Awaited<ReturnType<typeof body>>['value']
      try {
        const asLong = keepOpen(timeoutMs)
        const perform = async (trx: Transaction<unknown>) => {
          if (asLong !== null) await executor.explained(trx.executeQuery(asLong))
          const { commit, value } = await within(body(forApplication(trx)), timeoutMs, {
            error: () => transactionTimeout(timeoutMs),
          })
          const open = ofKysely(trx)
          const answer = await inTurn(open, () => executor.explained(commits.commitIn(targetOf(open), commit)))
          if (answer === null) throw new Refused(commit, value)
          return { answer, value, runId: commit.lease.runId }
        }
        const done = await executor.transaction(perform, { explainsTrouble: true })
        watchers.noteChanged([done.runId])
        watchers.noteDue()
        return { answer: done.answer, value: done.value }
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        const { commit, value } = error as Refused<Value>
        const answer = await commits.lookUp(executor, commit)
        return { answer, value: answer.kept ? value : undefined }
      }
    },

    enqueue: (trx, runs) => writeWithin(trx, (target) => enqueuer.enqueue(target, runs)),

    async run(body) {
      await gate.pass(executor)
      const { value, trx } = await executor.transaction(async (open) => {
        const own = forApplication(open)
        return { value: await body(own), trx: own }
      })
      if (hasEnqueued.has(trx)) watchers.noteDue()
      return value
    },
  }
  return { storage, writeWithin }
}

/** A session of `postgres()` is ended after 10 s in which its transaction did nothing. */
const LONG_MS = 10_000
/** Postgres takes no more. */
const MOST_MS = 2 ** 31 - 1

export function keepOpenOn({ dialect }: SqlContext): (ms: number) => CompiledQuery | null {
  return (ms) => {
    if (!dialect.isServer || ms < LONG_MS) return null
    const openMs = Math.min(Math.ceil(ms) + LONG_MS, MOST_MS)
    return CompiledQuery.raw(`set local idle_in_transaction_session_timeout = ${openMs}`)
  }
}

function targetOf({ send }: GivenTransaction): StatementTarget {
  return {
    read: send,
    async write(list) {
      const results = []
      for (const query of list) results.push(await send(query))
      return results
    },
  }
}

/** One after the other in one transaction: of savepoints that interleave, taking back one takes back the others' work. */
function createTurns() {
  const last = new WeakMap<object, Promise<unknown>>()
  return async <T>(open: GivenTransaction, work: () => Promise<T>): Promise<T> => {
    const connection = await open.connection()
    const turn = (last.get(connection) ?? Promise.resolve()).then(work)
    last.set(
      connection,
      turn.catch(() => {}),
    )
    return turn
  }
}

/** Names are few, since drivers remember the statements that they have seen. */
const SAVEPOINTS = 64
let savepoints = 0

/**
 * A refused list leaves nothing behind, even if the caller catches the error and commits. Should two lists overlap in one
 * transaction, of which durably cannot know by two objects for it, the names tell them apart: the database refuses to go
 * back to one that is gone, where under one name it would take back what was acknowledged.
 */
async function inSavepoint<T>(open: GivenTransaction, work: () => Promise<T>): Promise<T> {
  const name = `durably_${savepoints++ % SAVEPOINTS}`
  const send = (text: string) => open.send(CompiledQuery.raw(`${text} ${name}`))
  await send('savepoint')
  try {
    const value = await work()
    await send('release savepoint')
    return value
  } catch (error) {
    await send('rollback to savepoint')
    await send('release savepoint')
    throw error
  }
}

function transactionTimeout(timeoutMs: number): StorageError {
  return new StorageError(
    'TRANSACTION_TIMEOUT',
    `The transaction was still open after ${timeoutMs} ms and was rolled back. Do slow work outside of it.`,
  )
}
