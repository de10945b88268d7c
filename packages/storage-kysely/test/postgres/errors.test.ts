import { Kysely, sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { PostgresPool } from '../../src/drivers/postgres-pool'
import { leaseOf, newCommit, newRun, newStep, startRun } from '../builders'
import { Watch } from './orders'

let database: PostgresDatabase
let watch: Watch
const open: { close(): Promise<unknown> }[] = []

beforeAll(async () => {
  database = await createDatabase()
  watch = await Watch.open(database.url)
  await storageOn(database.url).migrate()
})

afterAll(async () => {
  for (const one of open) await one.close()
  await watch.end()
  await database.drop()
})

function storageOn(url: string, options = ''): KyselyStorage {
  const own = new URL(url)
  if (options !== '') own.searchParams.set('options', options)
  own.searchParams.set('application_name', 'under-test')
  const storage = createKyselyStorage({ dialect: postgres({ connectionString: own.href, max: 3, listen: false }) })
  open.push(storage)
  return storage
}

/** On a pool of the application, which keeps its settings. */
function onPool(options = ''): { readonly storage: KyselyStorage; readonly pool: pg.Pool } {
  const pool = new pg.Pool({ connectionString: database.url, max: 4, application_name: 'under-test', options })
  const storage = createKyselyStorage({ dialect: postgres({ pool, listen: false }) })
  open.push(storage, { close: () => pool.end() })
  return { storage, pool }
}

function changed(change: (url: URL) => void): string {
  const url = new URL(database.url)
  change(url)
  return url.href
}

describe('errors of Postgres', () => {
  it('a server that is not there', async () => {
    const storage = storageOn(changed((url) => (url.port = '1')))
    await expect(storage.getRun('x')).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    await expect(storage.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  })

  it('a database that is not there', async () => {
    const storage = storageOn(changed((url) => (url.pathname = '/nowhere')))
    await expect(storage.migrate()).rejects.toMatchObject({ code: 'STORAGE_CANNOT_OPEN' })
  })

  it('a user that is not there', async () => {
    const nobody = storageOn(changed((url) => Object.assign(url, { username: 'nobody_at_all', password: 'x' })))
    await expect(nobody.getRun('x')).rejects.toMatchObject({ code: 'STORAGE_CANNOT_OPEN' })
  })

  it('a user who may read only, and a database for reading only', async () => {
    await createGuest()
    await watch.query('grant select on all tables in schema public to durably_guest')
    const guest = storageOn(changed((url) => Object.assign(url, { username: 'durably_guest', password: '' })))
    expect(await guest.getRun('x')).toBe(null)
    await expect(guest.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORAGE_READONLY' })
    const standby = storageOn(database.url, '-c default_transaction_read_only=on')
    await expect(standby.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORAGE_READONLY' })
  })

  it('a list that no statement can carry', async () => {
    const payload = JSON.stringify('x'.repeat(2 ** 20))
    const runs = Array.from({ length: 600 }, () => newRun({ payload }))
    await expect(storageOn(database.url).enqueue(runs)).rejects.toMatchObject({
      code: 'STORAGE_REJECTED',
      message: expect.stringMatching(/600 runs are 600 million characters.*several batches/),
    })
  })

  it('no connection left', async () => {
    const name = new URL(database.url).pathname.slice(1)
    const limited = changed((url) => Object.assign(url, { username: 'durably_guest', password: '' }))
    await watch.query(`alter database ${name} connection limit 1`)
    const storage = storageOn(limited)
    await expect(storage.getRun('x')).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    await watch.query(`alter database ${name} connection limit -1`)
    await expect.poll(() => storage.getRun('x').catch(({ code }: { code: string }) => code)).toBe(null)
  })

  it('a statement that takes too long', async () => {
    const { storage } = onPool('-c statement_timeout=2000')
    const run = await startRun(storageOn(database.url))
    await watch.query('begin; lock table durably_runs in access exclusive mode')
    await expect(storage.getRun(run.id)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    await watch.query('rollback')
    expect(await storage.commit([newCommit(run, { steps: [newStep()] })])).toMatchObject([{ kept: true }])
  })

  it('a lock that is held too long, waited for as long as patience lasts', async () => {
    const { storage, pool } = onPool('-c lock_timeout=20')
    const run = await startRun(storage)
    let tries = 0
    pool.on('acquire', () => {
      tries += 1
    })
    let cancel: Promise<unknown> = Promise.resolve()
    await withLocked(run.id, async () => {
      cancel = storage.command(cancelOf(run.id))
      // Refused twice at least, and sent again.
      await expect.poll(() => tries, { interval: 2 }).toBeGreaterThan(2)
    })
    expect(await cancel).toMatchObject({ applied: true })
  })

  it.each([
    ['caller', /^(100|\d{1,2})ms$/],
    ['owner', /^(2s|1\d\d\dms|\d{1,3}ms)$/],
  ] as const)('a lock that a list waits for, no longer than its %s may', async (sender, limit) => {
    const { pool } = onPool()
    const connections = new PostgresPool({ pool, prepare: false, isOwn: false })
    const query = sql`select current_setting('lock_timeout') as it`.compile(new Kysely({ dialect: postgres({ pool }) }))
    const [[row] = []] = await connections.send([query, query], 2000, sender)
    expect(String(row?.['it'])).toMatch(limit)
  })

  it('a key that is held, through a pool that would wait for ever', async () => {
    const { storage } = onPool('-c lock_timeout=0')
    const somebody = new pg.Client(database.url)
    await somebody.connect()
    const held = newRun({ idempotencyKey: 'held' })
    await storage.enqueue([held])
    await somebody.query('begin')
    await somebody.query(`update durably_runs set idempotency_key = 'taken' where id = $1`, [held.id])
    const again = newRun({ idempotencyKey: 'taken', jobName: held.jobName })
    await expect(storage.enqueue([again])).rejects.toMatchObject({ code: 'STORAGE_BUSY' })
    expect(await waiting()).toEqual([])
    await somebody.query('rollback')
    await somebody.end()
  })

  it.each(['own', 'given'])('shorter limits of the role stay (a pool that is %s)', async (kind) => {
    const options = '-c lock_timeout=50 -c statement_timeout=0'
    const connectionString = changed((url) => url.searchParams.set('options', options))
    const pool = new pg.Pool({ connectionString: database.url, options })
    open.push({ close: () => pool.end() })
    const dialect = postgres(kind === 'own' ? { connectionString } : { pool })
    const read = (name: string) => sql`select current_setting(${name}) as it`.compile(new Kysely({ dialect }))
    const limits = await dialect.durablyHooks.batch?.([read('lock_timeout'), read('statement_timeout')], 5000, 'caller')
    expect(limits?.map(([row]) => row?.['it'])).toEqual(['50ms', kind === 'own' ? '30s' : '0'])
    await dialect.durablyHooks.close?.()
  })

  it('a deadlock with the application is tried again', async () => {
    const { storage } = onPool('-c deadlock_timeout=50')
    const a = await startRun(storage)
    const b = newRun({ parentRunId: a.id })
    await storage.enqueue([b])
    const app = new pg.Client(database.url)
    await app.connect()
    await app.query(`set deadlock_timeout = '10s'; begin`)
    await app.query('select 1 from durably_runs where id = $1 for update', [b.id])
    let isDone = false
    // Its parent hears of its end, so both rows are locked.
    const cancel = storage.command(cancelOf(b.id)).finally(() => (isDone = true))
    // It waits for a tenth of a second at a time, and lets go of both in between.
    const free = () => watch.query('select 1 from durably_runs where id = $1 for update skip locked', [a.id])
    await expect.poll(free, { interval: 2 }).toEqual([])
    await app.query('select 1 from durably_runs where id = $1 for update', [a.id])
    // The application has both rows: the command was the victim, or had let go of them.
    expect(isDone).toBe(false)
    await app.query('commit')
    await app.end()
    expect(await cancel).toMatchObject({ applied: true })
  })

  it('a constraint that is violated', async () => {
    const storage = storageOn(database.url)
    const run = await startRun(storage)
    const twice = [newStep({ name: 'same' }), newStep({ name: 'same' })]
    await expect(storage.commit([newCommit(run, { steps: twice })])).rejects.toMatchObject({
      code: 'STORAGE_REJECTED',
      cause: { code: '23505' },
    })
    await expect(storage.enqueue([newRun({ payload: '{"a":"\\u0000' })])).rejects.toMatchObject({
      code: 'STORAGE_REJECTED',
    })
  })

  it.each([
    ['XX000', 'STORAGE_UNAVAILABLE'],
    ['XX001', 'STORAGE_CORRUPT'],
    ['XX002', 'STORAGE_CORRUPT'],
  ])('trouble inside the server: %s is %s', async (state, code) => {
    const storage = storageOn(database.url)
    await watch.query(`create or replace function trouble() returns trigger language plpgsql as
      $$ begin raise exception using errcode = '${state}', message = 'tuple concurrently updated'; end $$`)
    await watch.query('create or replace trigger trouble before insert on durably_runs execute function trouble()')
    const enqueue = storage.enqueue([newRun()])
    await enqueue.catch(() => {})
    await watch.query('drop trigger trouble on durably_runs')
    await expect(enqueue).rejects.toMatchObject({ code, cause: { code: state } })
  })

  it('a transaction that could not be serialized, as the engine has to try it again', async () => {
    const { storage } = onPool('-c default_transaction_isolation=serializable')
    const run = await startRun(storage)
    const body = async (trx: Parameters<Parameters<typeof storage.transaction.run>[0]>[0]) => {
      await trx.selectFrom('durably_runs').select('id').where('id', '=', run.id).execute()
      await storage.renew([leaseOf(run)], 60_000)
      return { commit: newCommit(run, { steps: [newStep()] }), value: 1 }
    }
    await expect(storage.transaction.commitWith(body, 5000)).rejects.toMatchObject({ code: 'STORAGE_BUSY' })
    expect(await storage.getSteps(run.id)).toEqual([])
  })
})

/** The server asks for no password, so whether a wrong one is refused is not seen here: it is of the same class as no user. */
async function createGuest(): Promise<void> {
  await watch.query('drop role if exists durably_guest; create role durably_guest login')
}

function cancelOf(runId: string) {
  return { kind: 'cancel', runId, events: { cancelled: [], requested: [] } } as const
}

/** As long as somebody else has its row. */
async function withLocked(runId: string, use: () => Promise<void>): Promise<void> {
  const holder = new pg.Client(database.url)
  await holder.connect()
  await holder.query('begin')
  await holder.query('select 1 from durably_runs where id = $1 for update', [runId])
  await use()
  await holder.end()
}

const IN_TRANSACTION = `state like 'idle in transaction%'`
const SESSIONS = `select pid, state from pg_stat_activity where application_name = 'under-test' and datname = current_database()`
const waiting = () => watch.query(`${SESSIONS} and wait_event_type = 'Lock'`)
const inTransaction = async () => (await watch.query(`${SESSIONS} and ${IN_TRANSACTION}`)).length

async function kill(condition: string): Promise<number> {
  return (await watch.query(`select pg_terminate_backend(pid) from (${SESSIONS}) as mine where ${condition}`)).length
}

describe('a connection that is killed', () => {
  const kinds = [
    ['of its own pool', () => ({ storage: storageOn(database.url), pool: null })],
    ['of a pool of the application', () => onPool()],
  ] as const

  it.each(kinds)('%s, in the middle of a list', async (_kind, connect) => {
    const { storage, pool } = connect()
    const run = await startRun(storage)
    await withLocked(run.id, async () => {
      const failed = expect(storage.command(cancelOf(run.id))).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
      await expect.poll(() => kill(`pid in (select pid from pg_locks where not granted)`)).toBe(1)
      await failed
    })
    const commit = newCommit(run, { steps: [newStep()] })
    expect(await storage.commit([commit])).toMatchObject([{ kept: true }])
    await expect.poll(inTransaction).toBe(0)
    if (pool !== null) expect([pool.waitingCount, pool.totalCount - pool.idleCount]).toEqual([0, 0])
  })

  it.each(kinds)('%s, while it is idle', async (_kind, connect) => {
    const { storage } = connect()
    await Promise.all([1, 2, 3].map(() => storage.enqueue([newRun({ jobName: 'idle' })])))
    await kill('true')
    const answers = () =>
      storage.counts({}).then(
        () => 'ok',
        ({ code }: { code: string }) => code,
      )
    await expect.poll(answers, { interval: 5 }).toBe('ok')
    expect(await storage.enqueue([newRun({ jobName: 'idle' })])).toMatchObject([{ created: true }])
  })

  it.each(kinds)('%s, while the application has it', async (_kind, connect) => {
    const { storage } = connect()
    const run = await startRun(storage)
    const body = async () => {
      await kill(IN_TRANSACTION)
      return { commit: newCommit(run, { steps: [newStep()] }), value: 1 }
    }
    await expect(storage.transaction.commitWith(body, 5000)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    const second = async (trx: Parameters<Parameters<typeof storage.transaction.run>[0]>[0]) => {
      await kill(IN_TRANSACTION)
      await sql`select 1`.execute(trx)
    }
    await expect(storage.transaction.run(second)).rejects.toThrow(/terminat|not queryable/)
    expect(await storage.getSteps(run.id)).toEqual([])
    expect(await storage.commit([newCommit(run, { steps: [newStep()] })])).toMatchObject([{ kept: true }])
    await expect.poll(inTransaction).toBe(0)
  })

  it('of a pool that was in use before durably got it', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 3, application_name: 'under-test' })
    const before = await Promise.all([pool.connect(), pool.connect()])
    for (const client of before) client.release()
    const storage = createKyselyStorage({ dialect: postgres({ pool, listen: false }) })
    open.push(storage, { close: () => pool.end() })
    const run = await startRun(storage)
    const body = async () => {
      await kill(IN_TRANSACTION)
      return { commit: newCommit(run, { steps: [newStep()] }), value: 1 }
    }
    await expect(storage.transaction.commitWith(body, 5000)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    expect(await storage.commit([newCommit(run, { steps: [newStep()] })])).toMatchObject([{ kept: true }])
  })
})

it('tells what the server promises of an acknowledged commit', async () => {
  const careless = storageOn(database.url, '-c synchronous_commit=off')
  expect(await careless.reportDurability()).toMatchObject({ synchronous: 'off', survivesPowerCut: false })
  expect(await storageOn(database.url).reportDurability()).toMatchObject({ synchronous: 'on' })
})

it('listens with the password that a pool hides in its options', async () => {
  const pool = new pg.Pool({ host: 'localhost', password: 'secret' })
  expect(new PostgresPool({ pool, prepare: true, isOwn: false }).newClient().password).toBe('secret')
  await pool.end()
})
