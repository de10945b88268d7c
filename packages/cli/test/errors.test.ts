import { spawnSync } from 'node:child_process'
import { closeSync, cpSync, mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createDurably } from '@coji/durably'
import { betterSqlite3 } from '@coji/durably/better-sqlite3'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createDatabase } from '../../../test/postgres'
import { call, newFile, tempFile, usePrograms } from './kit'

const { file: template, remove } = tempFile()
let runId = ''

beforeAll(async () => {
  const durably = createDurably({ dialect: betterSqlite3(template) })
  await durably.migrate()
  runId = (await durably.trigger('job', { name: 'ü' })).id
  await durably.close()
  return remove
})

/** A database with one run, for the test alone. */
function newDatabase(name = 'app.db'): string {
  const file = join(dirname(newFile()), name)
  cpSync(template, file)
  return file
}

function edited(statement: string): string {
  const file = newDatabase()
  const database = new Database(file)
  database.exec(statement)
  database.close()
  return file
}

/** One plain sentence, and nothing else. */
async function refusal(...args: readonly string[]): Promise<string> {
  const { code, out, err } = await call(args)
  expect({ code, out, lines: err.trim().split('\n').length }).toEqual({ code: 1, out: '', lines: 1 })
  return err.trim()
}

async function misuse(...args: readonly string[]): Promise<string> {
  const { code, out, err } = await call(args)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  return err
}

describe('what is wrong with the database is said in one sentence', () => {
  it('a file that is missing stays missing', async () => {
    const file = newFile()
    const folder = dirname(file)
    for (const command of [['status'], ['migrate'], ['runs'], ['retry', '--all', '--yes']]) {
      expect(await refusal(...command, '--db', `file:${file}`)).toBe(
        `There is no file ${file} (looked for ${file}). Nothing was created; check --db.`,
      )
    }
    expect(readdirSync(folder)).toEqual([])
  })

  it('a folder, and what is no database', async () => {
    const file = newFile()
    expect(await refusal('status', '--db', dirname(file))).toBe(
      `${dirname(file)} is no file. Name the database file itself.`,
    )
    writeFileSync(file, 'hello '.repeat(1000))
    expect(await refusal('status', '--db', file)).toBe(
      `${file} is no SQLite database. Check --db; an encrypted one cannot be read here.`,
    )
  })

  it('no tables, or those of another prefix or schema', async () => {
    const file = newFile()
    writeFileSync(file, '')
    expect(await refusal('status', '--db', file)).toBe(
      `There are no tables of durably in ${file}: no durably_runs. Is it the right database? Otherwise see --table-prefix ` +
        'and --schema, or make them: durably migrate.',
    )
    expect(await refusal('runs', '--db', newDatabase(), '--table-prefix', 'jobs_')).toContain('no jobs_runs.')
    expect(await refusal('runs', '--db', file, '--schema', 'jobs')).toBe(
      '--schema is for Postgres; SQLite has no schemas. Leave it out.',
    )
  })

  it('tables that are too new, or too old', async () => {
    const tooNew = edited('insert into durably_schema_versions values (99, 0, 98)')
    expect(await refusal('status', '--db', tooNew)).toMatch(
      /^The tables in \S+ are newer than this command: they ask for version 98 or later, and it knows \d+\. Use the one of/,
    )
    expect(await refusal('migrate', '--db', tooNew)).toContain('asks for schema version 98 or newer')
    expect(await refusal('migrate', '--dry-run', '--db', tooNew)).toContain('98')
    const readable = edited('insert into durably_schema_versions values (99, 0, 1)')
    expect(await call(['status', '--db', readable])).toMatchObject({ code: 0 })
    const old = edited('delete from durably_schema_versions where version > 5')
    expect(await refusal('runs', '--db', old)).toMatch(
      /^The tables in \S+ have version 5, and this command needs \d+\. Use the @coji\/durably-cli of the version of your/,
    )
  })

  it('a table of somebody else', async () => {
    const file = newFile()
    const database = new Database(file)
    database.exec('create table durably_schema_versions (name text)')
    database.close()
    expect(await refusal('status', '--db', file)).toBe(
      "There is a table durably_schema_versions that is not durably's. Choose another tablePrefix, or rename that table",
    )
  })

  it('a server that does not answer, or does not let one in, and no password of it', async () => {
    expect(await refusal('status', '--db', 'postgres://me:secret@127.0.0.1:1/app?password=secret')).toBe(
      'The database does not answer. postgres://me@127.0.0.1:1/app: connect ECONNREFUSED 127.0.0.1:1. Is it running, and ' +
        'is the address right?',
    )
    expect(await refusal('status', '--db', 'http://127.0.0.1:1')).toMatch(/^The database does not answer. http:/)
    const { url, drop } = await createDatabase()
    onTestFinished(drop)
    const missing = new URL(url)
    missing.pathname = '/nothing-here'
    expect(await refusal('status', '--db', missing.href)).toMatch(
      /^The database cannot be opened\. \S+: database "nothing-here" does not exist\. Check the address, the user and the/,
    )
    expect(await refusal('status', '--db', url)).toMatch(/^There are no tables of durably in postgres/)
    expect(await refusal('status', '--db', url, '--schema', 'jobs')).toContain('no jobs.durably_runs.')
  })

  it('an address that is none', async () => {
    expect(await refusal('status', '--db', 'mysql://me:secret@host/app')).toBe(
      'mysql:// is no database of durably, which keeps runs in SQLite or Postgres: file:app.db, ' +
        'postgres://user@host/database or libsql://name.turso.io.',
    )
    expect(await refusal('status', '--db', 'file::memory:')).toContain('belongs to the process that made it')
    expect(await refusal('status', '--db', 'postgres://me:p#ss w@rd@host:x/')).toContain('is no URL')
  })

  it('a run that is not there, or not the only one', async () => {
    const file = newDatabase()
    expect(await refusal('run', 'nonsense', '--db', file)).toBe(
      `There is no run nonsense in ${file}. It may have been deleted; durably runs lists those that are there.`,
    )
    expect((await call(['run', runId.slice(0, 20).toLowerCase(), '--db', file, '--json'])).out).toContain(runId)
    const two = edited(
      `insert into durably_runs (id, job_name, payload, status, created_at, updated_at) select '${runId.slice(0, 24)}ZZ',
        job_name, payload, status, created_at, updated_at from durably_runs`,
    )
    expect(await refusal('cancel', runId.slice(0, 12), '--db', two)).toMatch(
      /^Several runs begin with \S+: \S+, \S+\. Give/,
    )
    expect(await refusal('retry', runId, '--db', file)).toBe(
      `Run ${runId} is pending. durably retry takes a run that is failed, timed_out, cancelled.`,
    )
  })

  it('a run that has logged nothing', async () => {
    expect(await call(['logs', runId, '--db', newDatabase()])).toEqual({
      code: 0,
      out: '',
      err: `Run ${runId} has logged nothing. Logs are kept where the application uses withLogPersistence().\n`,
    })
  })
})

describe('what makes no sense is told with what would', () => {
  it.each([
    [['stauts'], "unknown command 'stauts'\n(Did you mean status?)"],
    [['status', '--jsno'], "unknown option '--jsno'\n(Did you mean --json?)"],
    [['status', 'app.db'], 'too many arguments'],
    [['status'], 'Which database? Name it with --db, such as file:app.db,'],
    [['run'], "missing required argument 'id'"],
    [['runs', '--status', 'broken'], '"broken" is none of pending,'],
    [['retry', '--status', 'pending'], '"pending" is none of failed, timed_out, cancelled.'],
    [['runs', '--limit', '0'], 'It is a whole number from 1 to 10000.'],
    [['runs', '--since', 'yesterday'], 'A time is 30s, 15m, 2h, 7d, 4w, or a date'],
    [['runs', '--since', '999999999d'], 'A time is 30s, 15m, 2h, 7d, 4w, or a date'],
    [['runs', '--label', 'red'], 'A label is given as name=value.'],
    [['runs', '--waits-for', 'godot'], 'Allowed choices are retry, unpark, signal, time, child.'],
    [['runs', '--cursor', 'x', '--db', 'x'], 'A cursor is what the page before has said.'],
    [['retry', '--db', 'x'], 'Which runs? Give the id of one, a filter such as --job, or --all.'],
    [['unpark', '--status', 'pending'], "unknown option '--status'"],
    [['signal', 'x'], "missing required argument 'name'"],
    [['dashboard', '--writ'], "unknown option '--writ'\n(Did you mean --write?)"],
    [['mcp', '--json'], "unknown option '--json'"],
    [['cancel', 'x', '--job', 'y', '--db', 'x'], 'either the id of a run or a filter, not both'],
  ] as const)('%j', async (args, message) => {
    expect(await misuse(...args)).toContain(message)
  })

  it('shows what there is, and is no error then', async () => {
    expect(await call(['--help'])).toMatchObject({ code: 0, err: '' })
    expect((await call(['runs', '--help'])).out).toContain('--since <time>')
    expect((await call(['--version'])).out).toMatch(/^\d+\.\d+\.\d+/)
  })
})

describe('a process of its own', () => {
  const programs = usePrograms()

  it('ends with the same codes, and takes the database from the environment', async () => {
    const file = newDatabase('with space #1?.db')
    const { code, out } = await programs.start('durably', ['runs', '--json'], { env: { DURABLY_DB: file } }).ended
    expect({ code, runs: JSON.parse(out).runs.length }).toEqual({ code: 0, runs: 1 })
    const codes = await Promise.all([
      programs.durably('status', '--db', newFile()),
      programs.durably('status', '--nope'),
    ])
    expect(codes.map((ended) => ended.code)).toEqual([1, 2])
  })

  it('does not end as if it had told what nobody could write down', () => {
    // A disk without room, which only Linux has.
    if (process.platform !== 'linux') return
    const full = openSync('/dev/full', 'w')
    const args = [`${programs.folder}/durably.mjs`, 'runs', '--json', '--db', newDatabase()]
    const { status, stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', full, 'pipe'], encoding: 'utf8' })
    closeSync(full)
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringMatching(/^The result could not be written: ENOSPC.*\n$/),
    })
  })

  it('says which driver is missing', async () => {
    const folder = join(dirname(newFile()), 'elsewhere')
    mkdirSync(folder)
    cpSync(programs.folder, folder, { recursive: true })
    const commander = join(dirname(programs.folder), '..', '..', 'commander')
    cpSync(commander, join(folder, 'node_modules', 'commander'), { recursive: true, dereference: true })
    for (const [address, driver] of [
      [newDatabase(), '@libsql/client'],
      ['postgres://localhost/app', 'pg'],
    ] as const) {
      const { code, err } = await programs.start('durably', ['status', '--db', address], { folder }).ended
      expect({ code, err }).toEqual({
        code: 1,
        err: `The driver ${driver} is missing. Install it beside durably: npm install ${driver}.\n`,
      })
    }
  })
})
