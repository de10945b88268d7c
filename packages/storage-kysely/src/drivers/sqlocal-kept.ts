import { StorageError } from '@coji/durably-core/storage'
import type { Kysely } from 'kysely'
import type { SQLocalKysely } from 'sqlocal/kysely'
import { opfsPath } from './opfs-path'
import { obstacleToOpfs, whyNotKept } from './opfs-trouble'
import { innerOf, within } from '../connection'

/** Slow lines take their time for the worker and a megabyte of SQLite; SQLite itself waits 5 s for a held file. */
const OPENING_MS = 60_000

/** Says that a worker was started and nothing was heard of it. */
export class UnheardWorker extends StorageError {
  constructor(message: string) {
    super('STORAGE_CANNOT_OPEN', message)
  }
}

/** In OPFS each try waits for seconds already, and SQLite would try a hundred times with the time-out it has there. */
export const NO_BUSY_TIMEOUT = 'pragma busy_timeout = 0'

/** These are asked for by name; every other path is a file that must be kept. */
const NOT_A_FILE: ReadonlySet<string> = new Set([':memory:', 'local', ':localStorage:', 'session', ':sessionStorage:'])

export function isFile(path: string): boolean {
  return !NOT_A_FILE.has(path)
}

/** The same text for the same data in every tab of the origin. */
export function databaseAt(path: string): string {
  if (isFile(path)) return `opfs:/${opfsPath(path)}`
  return path === 'local' || path === ':localStorage:' ? 'localStorage' : `of this page: ${Math.random()}`
}

interface Expected {
  /** Rejects when the worker is gone. */
  readonly failure?: Promise<never>
  readonly withinMs?: number
}

/** Throws when SQLocal has turned to memory without a word. */
export async function assertKept(client: SQLocalKysely, expected: Expected = {}): Promise<void> {
  const { failure = failureOf(client), withinMs = OPENING_MS } = expected
  const { databasePath } = client['config']
  const { storageType } = await answerOf(client.getDatabaseInfo(), failure, withinMs)
  if (storageType !== 'memory' || !isFile(databasePath)) return
  throw obstacleToOpfs(databasePath) ?? (await whyNotKept(databasePath))
}

/** A bare dialect hides its client, but its connections show it. Does nothing for other dialects. */
export async function assertBareSqlocalIsKept(db: Kysely<unknown>): Promise<void> {
  await db.getExecutor().provideConnection(async (given) => {
    const connection = innerOf(given)
    const client = 'client' in connection ? connection.client : null
    if (isSqlocal(client)) await assertKept(client)
  })
}

/** Rejects when the client's worker is gone: what was asked of it is never answered then. */
export function failureOf(client: SQLocalKysely): Promise<never> {
  const failure = new Promise<never>((_, reject) => {
    const { processor } = client as unknown as { readonly processor: unknown }
    if (typeof Worker === 'undefined' || !(processor instanceof Worker)) return
    processor.addEventListener('error', (event) => {
      event.preventDefault()
      reject(workerFailed(event.message))
    })
  })
  failure.catch(() => {})
  return failure
}

async function answerOf<T>(answer: Promise<T>, failure: Promise<never>, withinMs: number): Promise<T> {
  try {
    return await within(Promise.race([answer, failure]), withinMs, {
      error: () => new UnheardWorker(unheard(withinMs)),
    })
  } catch (error) {
    throw error instanceof StorageError ? error : workerFailed(`it could not start SQLite (${messageOf(error)})`)
  }
}

function unheard(withinMs: number): string {
  return (
    `The worker of SQLite was started and did not answer within ${withinMs / 1000} s. Either the line is too slow for it ` +
    'and the megabyte of sqlite3.wasm, or the browser has stopped in the middle: reload the page, and if that does not ' +
    'help, restart the browser.'
  )
}

function workerFailed(why: string): StorageError {
  return new StorageError(
    'STORAGE_CANNOT_OPEN',
    `The worker of SQLite failed: ${why || 'its script could not be loaded'}. Bundlers need sqlocal's plugin ` +
      '(sqlocal/vite), and the host must serve the worker and sqlite3.wasm with the page.',
  )
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function isSqlocal(value: unknown): value is SQLocalKysely {
  return typeof value === 'object' && value !== null && 'getDatabaseInfo' in value
}
