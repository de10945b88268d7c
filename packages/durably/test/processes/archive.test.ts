import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import type { SqlDurably } from '../../src/index'
import { withLogPersistence, withLogRetention } from '../../src/plugins'
import { fileArchive } from '../../src/plugins-node'
import { newFile } from '../instances'
import { observe } from './observer'
import type { ArchiverConfig } from './programs/archiver'
import { DRIVERS } from './programs/drivers'
import { type Program, usePrograms } from './programs'

const KILLS = scaled({ quick: 8, full: 100 })

const start = usePrograms('archiver')

/** Runs whose logs are known. */
class Logging {
  readonly expected = new Map<string, string[]>()
  readonly #durably: SqlDurably
  readonly #job
  #lines: readonly string[] = []

  constructor(durably: SqlDurably) {
    this.#durably = durably
    this.#job = durably.defineJob({ name: 'log', input: z.object({}) }, (ctx) => {
      for (const line of this.#lines) ctx.log.info(line)
      throw new Error('no')
    })
  }

  async logAnew(count: number): Promise<void> {
    this.#lines = linesOf(count)
    const { id } = await this.#job.trigger({})
    await this.#end(id)
  }

  async logMore(id: string, count: number): Promise<void> {
    this.#lines = linesOf(count)
    await this.#durably.retry(id)
    await this.#end(id)
  }

  async remove(id: string): Promise<void> {
    await this.#durably.deleteRun(id)
    this.expected.delete(id)
  }

  async #end(id: string): Promise<void> {
    await this.#durably.runUntilIdle()
    this.expected.set(id, [...(this.expected.get(id) ?? []), ...this.#lines])
  }

  /** Of the newest so many. */
  async check(after: string, count = this.expected.size): Promise<void> {
    for (const [id, lines] of [...this.expected].slice(-count)) {
      const logs = await this.#durably.getLogs(id)
      expect(
        logs.map(({ message }) => message),
        `logs after ${after}`,
      ).toEqual(lines)
    }
  }
}

let written = 0

function linesOf(count: number): string[] {
  return Array.from({ length: count }, () => `line ${++written}`)
}

/** Where it is killed: before or after something it does, for the n-th time. */
function choosePoint(index: number): { readonly what: string; readonly nth: number } {
  const acts = ['announce', 'write', 'refer', 'leave', 'remove', 'forget'].flatMap((act) => [
    `before ${act}`,
    `after ${act}`,
  ])
  return { what: acts[index % acts.length] ?? '', nth: 1 + Math.floor(Math.random() * 2) }
}

async function killAt(program: Program, { what, nth }: ReturnType<typeof choosePoint>): Promise<void> {
  let seen = 0
  let rounds = 0
  program.onMessage((message) => {
    if (message['what'] === what) seen += 1
    if (message['what'] === 'after forget') rounds += 1
    // Where there is nothing to remove it never comes to that.
    if (seen === nth || rounds === 20) program.signal('SIGKILL')
  })
  expect(await program.ended).toMatchObject({ signal: 'SIGKILL' })
}

/** What is in the archive, and of what of it the database knows. */
function lookAt(file: string, folder: string) {
  const database = new SqliteDatabase(file, { readonly: true })
  const column = (sql: string) =>
    database
      .prepare<[], { readonly name: string }>(sql)
      .all()
      .map(({ name }) => name)
  const found = {
    integrity: database.pragma('integrity_check', { simple: true }),
    files: existsSync(folder) ? (readdirSync(folder, { recursive: true }) as string[]).filter(isFile) : [],
    known: [
      ...column('select log_ref as name from durably_runs where log_ref is not null'),
      ...column('select name from durably_archive_strays'),
    ],
    logs: column('select id as name from durably_logs').length,
  }
  database.close()
  return found
}

const isFile = (path: string) => path.includes('.')
const nameOf = (path: string) => (path.split('/').at(-1) ?? '').replace(/\.jsonl\.gz(\.draft)?$/, '')

describe.each(DRIVERS)('a process that archives logs and is killed, with %s', (driver) => {
  it('loses no line and doubles none, and leaves no file that nobody knows of', {
    timeout: LONG_PATIENCE_MS,
  }, async () => {
    const file = newFile()
    const folder = join(dirname(file), 'archive')
    const config: ArchiverConfig = { driver, file, folder, finishes: false }
    const durably = await observe(file)
    durably.use(withLogPersistence())
    durably.use(withLogRetention({ archive: fileArchive(folder), days: Number.POSITIVE_INFINITY, every: 3_600_000 }))
    const logging = new Logging(durably)
    for (let index = 0; index < KILLS; index++) {
      // Runs with one line and with several pages of the archive, of which some log more; and one that goes.
      for (const count of index % 4 === 0 ? [1, 3, 1200] : [1, 3, 30]) await logging.logAnew(count)
      const [gone, ...older] = (await durably.getRuns())
        .map(({ id }) => id)
        .slice(3)
        .reverse()
      for (const id of older.slice(0, 2)) await logging.logMore(id, 2)
      if (gone !== undefined && index > 2) await logging.remove(gone)
      const point = choosePoint(index)
      const program = start('archiver', config)
      await killAt(program, point)
      await logging.check(`a kill ${point.what}`, index % 10 === 7 ? undefined : 12)
      const { integrity, files, known } = lookAt(file, folder)
      expect(integrity).toBe('ok')
      expect(known).toEqual(expect.arrayContaining(files.map(nameOf)))
    }
    const last = start('archiver', { ...config, finishes: true })
    expect(await last.ended).toMatchObject({ code: 0, stderr: '' })
    await logging.check('the end')
    const { files, known, logs } = lookAt(file, folder)
    expect(logs).toBe(0)
    expect(known).toEqual(expect.arrayContaining(files.map(nameOf)))
    expect(files.length).toBeGreaterThanOrEqual(logging.expected.size)
    reportSuite({ suite: 'archive-kills', driver, kills: KILLS, lines: written, files: files.length })
  })
})
