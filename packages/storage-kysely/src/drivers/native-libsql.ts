import type { Durability } from '../dialect'
import { assertSynchronous, assertWal, connectionPragmas } from './pragmas'
import type { SynchronousDatabase, SynchronousSource, SynchronousStatement } from './synchronous'

/** What is used of the package `libsql`, on which the client of libSQL is built. */
interface NativeDatabase {
  readonly inTransaction: boolean
  exec(sql: string): void
  prepare(sql: string): NativeStatement
  close(): void
}

interface NativeStatement extends SynchronousStatement {
  safeIntegers(on: boolean): NativeStatement
}

type NativeLibrary = new (path: string, options: { readonly timeout: number }) => NativeDatabase

/** A file by its URL, without the promises of the client. `null`: only the client can open this, or say what is wrong with it. */
export function nativeLibsql(url: string): SynchronousSource | null {
  const path = pathOf(url)
  if (path === null) return null
  const Library = load()
  if (Library === null) return null
  return {
    location: url,
    isGiven: false,
    open: (durability) => new NativeLibsql(new Library(path, { timeout: 20 }), { location: url, durability }),
  }
}

const FILE = /^file:(?:\/\/(?:localhost)?(?=\/))?(?!\/\/|:memory:)([^?#]+)$/

function pathOf(url: string): string | null {
  try {
    const [, path] = FILE.exec(url) ?? []
    return path === undefined ? null : decodeURIComponent(path)
  } catch {
    return null
  }
}

interface ModuleOfNode {
  createRequire(from: string): NodeRequire
}

interface NodeRequire {
  (name: string): unknown
  resolve(name: string): string
}

/** It belongs to the client, and is found from there only. Where there is no Node, or all is one bundle, there is none. */
function load(): NativeLibrary | null {
  try {
    const { createRequire } = process.getBuiltinModule('node:module') as ModuleOfNode
    const client = createRequire(import.meta.url).resolve('@libsql/client')
    const library = createRequire(client)('libsql')
    return typeof library === 'function' ? (library as NativeLibrary) : null
  } catch {
    return null
  }
}

interface Settings {
  readonly location: string
  readonly durability: Durability | null
}

/** After SQLITE_BUSY a statement stays under way, and what comes next on its connection is not committed. */
class NativeLibsql implements SynchronousDatabase {
  readonly #native: NativeDatabase
  #wasBusy = false

  constructor(native: NativeDatabase, { location, durability }: Settings) {
    this.#native = native
    try {
      if (durability !== null) this.#setUp(durability, location)
    } catch (error) {
      native.close()
      throw error
    }
  }

  get inTransaction(): boolean {
    return this.#native.inTransaction
  }

  get isSpoilt(): boolean {
    return this.#wasBusy && !this.inTransaction
  }

  prepare(sql: string): SynchronousStatement {
    return COMMANDS.has(sql) ? this.#command(sql) : this.#statement(sql)
  }

  close(): void {
    this.#native.close()
  }

  /** What is prepared for this one call is never left under way. */
  #command(sql: string): SynchronousStatement {
    const run = () => {
      this.#native.exec(sql)
      return NO_CHANGE
    }
    return { reader: false, all: () => [], run, raw: () => {}, columns: () => [] }
  }

  #statement(sql: string): SynchronousStatement {
    const native = this.#native.prepare(sql).safeIntegers(true)
    return {
      reader: native.reader,
      all: (parameters) => this.#watched(() => native.all(bindable(parameters)).map(withNumbers)),
      run: (parameters) => this.#watched(() => native.run(bindable(parameters))),
      raw: () => native.raw(),
      columns: () => native.columns(),
    }
  }

  #watched<T>(execute: () => T): T {
    try {
      return execute()
    } catch (error) {
      if (isBusy(error)) this.#wasBusy = true
      throw error
    }
  }

  #setUp(durability: Durability, location: string): void {
    assertWal(this.#valueOf('journal_mode = WAL'), location)
    for (const pragma of connectionPragmas(durability)) this.#native.exec(`pragma ${pragma}`)
    assertSynchronous(this.#valueOf('synchronous'), durability, location)
  }

  #valueOf(pragma: string): unknown {
    const [row] = this.#native.prepare(`pragma ${pragma}`).all([])
    return Object.values(row ?? {})[0]
  }
}

const COMMANDS: ReadonlySet<string> = new Set(['begin immediate', 'commit', 'rollback'])

const NO_CHANGE = { changes: 0, lastInsertRowid: 0 }

function isBusy(error: unknown): boolean {
  return String(Object(error).code).startsWith('SQLITE_BUSY')
}

/** The library ends the process over a value that it does not know. These are converted as the client does. */
function bindable(parameters: readonly unknown[]): readonly unknown[] {
  return parameters.every(isPlain) ? parameters : parameters.map(toBindable)
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || Number.isFinite(value) || value === null
}

function toBindable(value: unknown): unknown {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value instanceof Date) return value.valueOf()
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  const isInteger = typeof value === 'bigint' && BigInt.asIntN(64, value) === value
  if (isPlain(value) || isInteger || ArrayBuffer.isView(value)) return value
  throw new TypeError(`${typeof value === 'object' ? 'An object' : String(value)} cannot be passed as a parameter.`)
}

/** A list of values, or a row with names. */
function withNumbers(row: unknown): unknown {
  if (Array.isArray(row)) {
    for (let index = 0; index < row.length; index++)
      if (typeof row[index] === 'bigint') row[index] = toNumber(row[index])
    return row
  }
  const own = row as Record<string, unknown>
  for (const column in own) if (typeof own[column] === 'bigint') own[column] = toNumber(own[column])
  return own
}

function toNumber(integer: bigint): number {
  const number = Number(integer)
  if (Number.isSafeInteger(number)) return number
  throw new RangeError('The database answered an integer that is too large for a number.')
}
