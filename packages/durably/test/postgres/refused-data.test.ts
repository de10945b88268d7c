import { randomUUID } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { postgresUrl } from '../../../../test/postgres'
import { postgres } from '../../src/postgres'
import { openOn } from '../instances'
import { newPlace, newSession, WITHOUT_POLLING } from './kit'

describe('a database with another encoding than UTF8', () => {
  it.each(['LATIN1', 'SQL_ASCII'])('is refused by migrate() with the reason (%s)', async (encoding) => {
    const name = `encoding_${randomUUID().replaceAll('-', '')}`
    const admin = await newSession(await postgresUrl())
    await admin.query(
      `create database ${name} encoding '${encoding}' template template0 locale_provider libc locale 'C'`,
    )
    onTestFinished(async () => {
      const session = await newSession(await postgresUrl())
      await session.query(`drop database ${name} with (force)`)
    })
    const url = new URL(await postgresUrl())
    url.pathname = `/${name}`
    const durably = openOn(postgres({ connectionString: url.href }))
    await expect(durably.migrate()).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(new RegExp(`${name}.*${encoding}.*encoding 'UTF8' template template0`)),
    })
    const own = await newSession(url.href)
    expect((await own.query("select 1 from pg_tables where tablename like 'durably%'")).rowCount).toBe(0)
  })
})

describe('data that Postgres refuses', () => {
  /** As the encodings and limits of databases do it. */
  const REFUSALS = [
    ['22021', 'invalid byte sequence for encoding'],
    ['22P05', 'character has no equivalent in encoding'],
    ['54000', 'row is too big'],
    ['54001', 'stack depth limit exceeded'],
  ] as const

  it.each(REFUSALS)('%s fails the step with what the database says (%s)', async (code, message) => {
    const place = await newPlace()
    await place.query(`create function refuse() returns trigger language plpgsql as $$ begin
      if new.output::text like '%poison%' then raise exception '${message}' using errcode = '${code}'; end if;
      return new; end $$`)
    await place.query(
      'create trigger refuse before insert or update on durably_steps for each row execute function refuse()',
    )
    const durably = place.open({ ...WITHOUT_POLLING, concurrency: 10 })
    let bodies = 0
    const job = durably.defineJob({ name: 'job', input: z.object({ value: z.string() }) }, (ctx, { value }) =>
      ctx.run('make', () => {
        bodies += 1
        return value
      }),
    )
    const values = ['one', 'poison', 'two', 'three', 'four']
    const runs = await job.batchTrigger(values.map((value) => ({ payload: { value } })))
    durably.start()
    const ended = await Promise.allSettled(runs.map(({ id }) => job.wait(id)))
    expect(ended.map(({ status }) => status)).toEqual(values.map((v) => (v === 'poison' ? 'rejected' : 'fulfilled')))
    expect(await durably.getRun(runs[1]?.id ?? '')).toMatchObject({ status: 'failed', error: message, crashCount: 0 })
    expect(await durably.getSteps(runs[1]?.id ?? '')).toMatchObject([{ status: 'failed', error: message }])
    expect(bodies).toBe(values.length)
  })
})
