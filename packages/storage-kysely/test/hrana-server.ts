import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import Database from 'better-sqlite3'

interface HranaValue {
  readonly type: 'null' | 'integer' | 'float' | 'text'
  readonly value?: string | number
}

interface HranaStatement {
  readonly sql?: string
  readonly sql_id?: number
  readonly args?: readonly HranaValue[]
}

interface HranaCondition {
  readonly type: 'ok' | 'error' | 'not' | 'and' | 'or' | 'is_autocommit'
  readonly step?: number
  readonly cond?: HranaCondition
  readonly conds?: readonly HranaCondition[]
}

interface HranaRequest {
  readonly type: 'execute' | 'batch' | 'sequence' | 'store_sql' | 'close_sql' | 'close' | 'get_autocommit'
  readonly stmt?: HranaStatement
  readonly batch?: { readonly steps: readonly { readonly stmt: HranaStatement; readonly condition?: HranaCondition }[] }
  readonly sql?: string
  readonly sql_id?: number
}

export interface HranaServer {
  readonly url: string
  /** Pipeline requests answered so far. */
  requests(): number
  /** Every stream is lost, and each request as well, until somebody calls what it returns. */
  cut(): () => void
  close(): Promise<void>
}

/** A stand-in for a libSQL server: its HTTP pipeline protocol, version 2, over a real SQLite file. */
export async function serveHrana(file: string): Promise<HranaServer> {
  const streams = new Map<string, Stream>()
  let requests = 0
  let isCut = false
  const server = createServer((request, response) => {
    void (async () => {
      if (isCut) return void request.socket.destroy()
      const body = JSON.parse(await readBody(request)) as { baton?: string; requests: readonly HranaRequest[] }
      requests += 1
      const baton = body.baton ?? `baton-${requests}`
      const stream = streams.get(baton) ?? new Stream(file)
      streams.set(baton, stream)
      const results = body.requests.map((one) => stream.answer(one))
      if (stream.isClosed) streams.delete(baton)
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ baton: stream.isClosed ? null : baton, base_url: null, results }))
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests: () => requests,
    cut() {
      for (const stream of streams.values()) stream.close()
      streams.clear()
      isCut = true
      return () => {
        isCut = false
      }
    },
    close: async () => {
      for (const stream of streams.values()) stream.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** One connection, as long as the client keeps the stream. */
class Stream {
  isClosed = false
  readonly #database: Database.Database
  readonly #stored = new Map<number, string>()

  constructor(file: string) {
    this.#database = new Database(file, { timeout: 20 })
    this.#database.pragma('journal_mode = WAL')
  }

  close(): void {
    this.isClosed = true
    this.#database.close()
  }

  answer(request: HranaRequest) {
    try {
      return { type: 'ok', response: { type: request.type, ...this.#perform(request) } }
    } catch (error) {
      return { type: 'error', error: describe(error) }
    }
  }

  #perform(request: HranaRequest): object {
    const { type, stmt, batch, sql, sql_id: sqlId } = request
    if (type === 'close') this.close()
    else if (type === 'store_sql' && sql !== undefined && sqlId !== undefined) this.#stored.set(sqlId, sql)
    else if (type === 'sequence' && sql !== undefined) this.#database.exec(sql)
    else if (type === 'execute' && stmt !== undefined) return { result: this.#execute(stmt) }
    else if (type === 'batch' && batch !== undefined) return { result: this.#batch(batch.steps) }
    return {}
  }

  #batch(steps: NonNullable<HranaRequest['batch']>['steps']): object {
    const results: (object | null)[] = []
    const errors: (object | null)[] = []
    for (const { stmt, condition } of steps) {
      const position = results.length
      results.push(null)
      errors.push(null)
      if (condition !== undefined && !this.#holds(condition, results, errors)) continue
      try {
        results[position] = this.#execute(stmt)
      } catch (error) {
        errors[position] = describe(error)
      }
    }
    return { step_results: results, step_errors: errors }
  }

  #holds(condition: HranaCondition, results: readonly unknown[], errors: readonly unknown[]): boolean {
    const { type, step = -1, cond, conds = [] } = condition
    const holds = (one: HranaCondition) => this.#holds(one, results, errors)
    if (type === 'ok') return results[step] !== null
    if (type === 'error') return errors[step] !== null
    if (type === 'not') return cond !== undefined && !holds(cond)
    if (type === 'is_autocommit') return !this.#database.inTransaction
    return type === 'and' ? conds.every(holds) : conds.some(holds)
  }

  #execute({ sql, sql_id: sqlId, args = [] }: HranaStatement): object {
    const text = sql ?? this.#stored.get(sqlId ?? -1) ?? ''
    const statement = this.#database.prepare<unknown[], unknown[]>(text)
    const values = args.map(({ type, value }) => (type === 'integer' ? BigInt(value ?? 0) : (value ?? null)))
    if (!statement.reader) {
      const { changes, lastInsertRowid } = statement.run(...values)
      return { cols: [], rows: [], affected_row_count: changes, last_insert_rowid: String(lastInsertRowid) }
    }
    const cols = statement.columns().map((column) => ({ name: column.name, decltype: column.type }))
    const rows = statement
      .raw()
      .all(...values)
      .map((row) => row.map(encode))
    return { cols, rows, affected_row_count: 0, last_insert_rowid: null }
  }
}

function encode(value: unknown): HranaValue {
  if (value === null) return { type: 'null' }
  if (typeof value === 'number') {
    return Number.isInteger(value) ? { type: 'integer', value: String(value) } : { type: 'float', value }
  }
  return { type: 'text', value: String(value) }
}

function describe(error: unknown): object {
  const { message, code } = error as { message: string; code?: string }
  return { message, code: code?.match(/^SQLITE_[A-Z]+/)?.[0] ?? 'UNKNOWN' }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
