/** Where requests of any kind are answered, and what is seen there of what they do. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Storage } from '@coji/durably-core'
import { createMemoryStorage, type MemoryStorage } from '@coji/durably-core/memory'
import { createKyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import type { HandlerOptions } from '../src'
import { USERS } from './fuzz-requests'

export interface Ground {
  readonly storage: Storage
  readonly access: HandlerOptions
  /** How often the storage was reached so far. */
  reached(): number
  /** Another number whenever something was written. */
  written(): unknown
}

/** In memory everybody may do everything. */
export function inMemory(): Ground {
  const { storage, seen } = watched(createMemoryStorage())
  return { storage, access: { allowAnonymous: true }, reached: () => seen.calls, written: () => seen.writes }
}

/** In a file there are tenants, and not everybody may do everything. */
export function inFile(): Ground {
  const folder = mkdtempSync(join(tmpdir(), 'durably-fuzz-'))
  const file = join(folder, 'app.db')
  let statements = 0
  const count = () => {
    statements += 1
  }
  const database = new Database(file, { verbose: count })
  const storage = createKyselyStorage({ dialect: betterSqlite3({ database }) })
  const witness = new Database(file)
  onTestFinished(() => {
    witness.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    storage,
    access: { authorize: ({ request }) => USERS[request.headers.get('authorization') ?? ''] ?? null },
    reached: () => statements,
    // Another one after each commit of another connection.
    written: () => witness.pragma('data_version', { simple: true }),
  }
}

/** Calls that reach the storage, and those that change something. */
function watched(storage: MemoryStorage) {
  const seen = { calls: 0, writes: 0 }
  const wrap = <T extends object>(group: T): T =>
    new Proxy(group, {
      get(target, name, receiver) {
        const value: unknown = Reflect.get(target, name, receiver)
        if (name === 'watch') return value
        if (typeof value === 'object' && value !== null) return wrap(value)
        if (typeof value !== 'function') return value
        return async (...given: unknown[]) => {
          seen.calls += 1
          const answer = await value.apply(target, given)
          if (isWrite(String(name), answer)) seen.writes += 1
          return answer
        }
      },
    })
  return { storage: wrap(storage), seen }
}

/** Of a schedule, of messages, of a run: what is answered says whether anything was written. */
const WRITES: Readonly<Record<string, (answer: unknown) => boolean>> = {
  enqueue: () => true,
  fork: (answer) => answer !== null,
  command: (answer) => (answer as { readonly applied: boolean }).applied,
  send: (answer) => (answer as { readonly kept: boolean }).kept,
  change: (answer) => answer !== null,
  startByHand: (answer) => (answer as readonly string[]).length > 0,
  replay: (answer) => answer !== 0,
}

function isWrite(name: string, answer: unknown): boolean {
  return Object.hasOwn(WRITES, name) && WRITES[name]?.(answer) === true
}
