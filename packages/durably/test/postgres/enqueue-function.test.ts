import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { postgres } from '../../src/postgres'
import { postgresPlace } from '../databases'
import { openMigrated } from '../instances'
import { newPlace, newSession, type Place, WITHOUT_POLLING } from './kit'

const input = z.object({ id: z.number() })

async function enqueue(place: Place, ...values: readonly unknown[]): Promise<string> {
  const holders = values.map((_value, index) => `$${index + 1}`)
  const rows = await place.query<{ readonly id: string }>(`select durably_enqueue(${holders.join(', ')}) as id`, values)
  return rows[0]?.id ?? ''
}

const timeOf = (id: string) =>
  [...id.slice(0, 10)].reduce((ms, digit) => ms * 32 + '0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(digit), 0)

const nested = (levels: number): unknown =>
  levels === 0 ? 1 : levels % 2 === 0 ? { a: nested(levels - 1) } : [nested(levels - 1)]

describe('durably_enqueue()', () => {
  it('creates a run from SQL, which a waiting worker takes at once', async () => {
    const place = await newPlace()
    const durably = place.open()
    const welcome = durably.defineJob({ name: 'welcome', input }, (_ctx, { id }) => id * 2)
    const ended = new Promise<string>((resolve) => durably.on('run:complete', ({ runId }) => resolve(runId)))
    durably.start()
    await place.query('create table users (id integer primary key)')
    await place.query(`create function greet() returns trigger language plpgsql as $$ begin
      perform durably_enqueue('welcome', jsonb_build_object('id', new.id)); return new; end $$`)
    await place.query('create trigger greet after insert on users for each row execute function greet()')
    await expect.poll(() => place.listeners()).toHaveLength(1)
    await place.query('insert into users values (21)')
    expect(await welcome.getRun(await ended)).toMatchObject({ status: 'completed', payload: { id: 21 }, output: 42 })
  })

  it('is there with the rest of its transaction, or not at all', async () => {
    const place = await newPlace()
    const session = await newSession(place.url)
    await session.query('begin')
    await session.query(`select durably_enqueue('welcome')`)
    await session.query('rollback')
    expect(await place.open().getRuns({})).toEqual([])
  })

  it('takes the options of trigger()', async () => {
    const place = await newPlace()
    const runAt = '2030-01-02T03:04:05.678Z'
    const id = await enqueue(
      place,
      'welcome',
      { id: 1 },
      {
        ...{ idempotencyKey: 'k', concurrencyKey: 'c', concurrencyLimit: 3, holdKeyWhileWaiting: true, priority: -7 },
        ...{ runAt, tenant: 'acme', labels: { plan: 'free', city: 'Zürich' }, timeout: 60_000, version: 'v2' },
      },
    )
    const durably = place.open()
    durably.defineJob({ name: 'welcome', input }, () => {})
    const run = await durably.getRun(id)
    expect(run).toMatchObject({
      tenant: 'acme',
      labels: { plan: 'free', city: 'Zürich' },
      jobVersion: 'v2',
      priority: -7,
    })
    expect(run).toMatchObject({ idempotencyKey: 'k', concurrencyKey: 'c', concurrencyLimit: 3, availableAt: runAt })
    const [row] = await place.query('select timeout_ms, hold_key_while_waiting from durably_runs')
    expect(row).toEqual({ timeout_ms: '60000', hold_key_while_waiting: 1 })
  })

  it('makes ids that sort as they were made, by the time that those of trigger() have', async () => {
    const place = await newPlace()
    const job = place.open().defineJob({ name: 'welcome', input }, () => {})
    const before = timeOf((await job.trigger({ id: 0 })).id)
    const rows = await place.query<{ readonly id: string }>(
      `select durably_enqueue('welcome', jsonb_build_object('id', n)) as id from generate_series(1, 300) as n`,
    )
    const ids = rows.map(({ id }) => id)
    expect([...ids].sort()).toEqual(ids)
    expect(new Set(ids).size).toBe(300)
    for (const id of ids) {
      expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
      expect(Math.abs(timeOf(id) - before)).toBeLessThan(600_000)
    }
  })

  it('hands back the run that has the key, and compares payloads by value', async () => {
    const place = await newPlace()
    const durably = place.open()
    const job = durably.defineJob({ name: 'welcome', input: z.object({ a: z.number(), b: z.number() }) }, () => {})
    const first = await job.trigger({ b: 1, a: 2 }, { idempotencyKey: 'k' })
    const again = (payload: object, onConflict: string) =>
      enqueue(place, 'welcome', payload, { idempotencyKey: 'k', onConflict })
    expect(await again({ a: 9, b: 9 }, 'return')).toBe(first.id)
    expect(await again({ a: 2, b: 1 }, 'reject')).toBe(first.id)
    await expect(again({ a: 9, b: 9 }, 'reject')).rejects.toMatchObject({
      code: '23505',
      message: `durably_enqueue(): run ${first.id} of job "welcome" has the idempotency key "k" and another payload.`,
    })
  })

  it('creates one run for one key, whoever is first', async () => {
    const place = await newPlace()
    const sessions = await Promise.all(Array.from({ length: 4 }, () => newSession(place.url)))
    const ids = await Promise.all(
      sessions.map(async (session) => {
        const { rows } = await session.query(`select durably_enqueue('welcome', '{}', '{"idempotencyKey": "k"}') as id`)
        return rows[0].id
      }),
    )
    expect(new Set(ids).size).toBe(1)
    expect(await place.open().getRuns({})).toHaveLength(1)
  })

  it.each([
    [{ idempotancyKey: 'k' }, 'there is no option idempotancyKey'],
    [{ priority: '1' }, 'priority must be of the JSON type number, not string'],
    [{ priority: 1.5 }, 'priority must be a 32-bit integer'],
    [{ delay: -1 }, 'delay must be milliseconds from 0'],
    [{ delay: 1, runAt: '2030-01-01' }, 'give either delay or runAt'],
    [{ runAt: 'infinity' }, 'runAt must be an instant of the years 1 to 9999'],
    [{ concurrencyKey: 'k', concurrencyLimit: 0 }, 'concurrencyLimit must be an integer from 1 to 1000'],
    [{ idempotencyKey: '' }, 'a key must not be empty'],
    [{ runAt: 'soon' }, 'runAt must be an instant'],
    [{ runAt: '2030-13-01' }, 'runAt must be an instant'],
    [{ onConflict: 'ignore' }, 'onConflict must be return or reject'],
    [{ labels: { a: 1 } }, 'the value of each label must be a string'],
    [{ labels: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`l${n}`, ''])) }, '32 labels at most'],
    [{ tenant: 'x'.repeat(513) }, 'tenant is longer than 512 characters'],
    [{ timeout: 0 }, 'timeout must be milliseconds from 1'],
    [[], 'options must be an object'],
    [null, 'options must be an object'],
  ])('refuses %j', async (options, message) => {
    const place = await newPlace()
    const given = options === null ? null : JSON.stringify(options)
    await expect(enqueue(place, 'welcome', { id: 1 }, given)).rejects.toMatchObject({
      code: '22023',
      message: expect.stringContaining(message),
    })
    expect(await place.open().getRuns({})).toEqual([])
  })

  it('takes payloads as deep as trigger() does', async () => {
    const place = await newPlace()
    const job = place.open().defineJob({ name: 'welcome', input: z.any() }, () => {})
    for (const payload of [nested(64), [nested(63)]]) {
      await job.trigger(payload)
      await enqueue(place, 'welcome', JSON.stringify(payload))
    }
    await expect(job.trigger(nested(65))).rejects.toMatchObject({ code: 'SERIALIZATION' })
    await expect(enqueue(place, 'welcome', JSON.stringify(nested(65)))).rejects.toThrow('nested deeper than 64 levels')
  })

  it('takes whole numbers however they are written', async () => {
    const place = await newPlace()
    const id = await enqueue(place, 'welcome', null, '{"priority": 5.0, "concurrencyLimit": 2.0, "timeout": 1e3}')
    expect(await place.open().getRun(id)).toMatchObject({ priority: 5, concurrencyLimit: 2 })
  })

  it('refuses a key whose run has what no jsonb can hold', async () => {
    const place = await newPlace()
    const job = place.open().defineJob({ name: 'welcome', input: z.any() }, () => {})
    await job.trigger({ text: 'a\0b' }, { idempotencyKey: 'k' })
    const again = enqueue(place, 'welcome', { text: 'ab' }, { idempotencyKey: 'k', onConflict: 'reject' })
    await expect(again).rejects.toMatchObject({ code: '23505' })
  })

  it('replaces what durably left behind, and nothing of the application', async () => {
    const create = `create function durably_enqueue(job text, payload jsonb default null, options jsonb default '{}')
      returns text language sql as 'select job'`
    const url = postgresPlace()
    const session = await newSession(url)
    const migrate = () => openMigrated(postgres({ connectionString: url }))
    await session.query(create)
    await expect(migrate()).rejects.toThrow("There is a durably_enqueue already that is not durably's")
    await session.query('drop function durably_enqueue')
    await (await migrate()).close()
    const tables = await session.query<{ readonly all: string }>(
      `select string_agg(quote_ident(tablename), ', ') as all from pg_tables where schemaname = current_schema`,
    )
    await session.query(`drop table ${tables.rows[0]?.all}`)
    await (await migrate()).close()
  })

  it('takes an option that is null for one that is not given', async () => {
    const place = await newPlace()
    const id = await enqueue(place, 'welcome', null, { idempotencyKey: null, labels: null, delay: null })
    expect(await place.open().getRun(id)).toMatchObject({ status: 'pending', idempotencyKey: null, labels: {} })
  })

  it('is in the schema of the tables', async () => {
    const url = postgresPlace()
    const durably = await openMigrated(postgres({ connectionString: url, schema: 'my jobs' }))
    const session = await newSession(url)
    await session.query(`select "my jobs".durably_enqueue('welcome', '{"id": 1}')`)
    expect(await durably.getRuns({})).toMatchObject([{ jobName: 'welcome', payload: { id: 1 } }])
    await durably.close()
  })

  it('finds its tables for a role that has them on no search path', async () => {
    const place = await newPlace()
    const session = await newSession(place.url)
    const { rows } = await session.query('select current_schema as schema, current_user as migrator')
    const { schema, migrator } = rows[0]
    const role = `caller_${randomUUID().replaceAll('-', '')}`
    await session.query(`create role ${role}; grant ${role} to ${migrator}; grant usage on schema ${schema} to ${role}`)
    await session.query(`grant select, insert on durably_runs, durably_run_labels to ${role}`)
    await session.query(`set role ${role}; set search_path to pg_catalog`)
    try {
      await session.query(`select "${schema}".durably_enqueue('welcome', '{"id": 1}', '{"labels": {"a": "b"}}')`)
    } finally {
      await session.query(`reset role; drop owned by ${role}; drop role ${role}`)
    }
    expect(await place.open(WITHOUT_POLLING).getRuns({})).toHaveLength(1)
  })
})
