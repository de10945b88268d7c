import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createDatabase } from '../../../../test/postgres'
import type { SqlDurably } from '../../src/index'
import { withLogPersistence } from '../../src/plugins'
import { postgres } from '../../src/postgres'
import { openMigrated, openOn } from '../instances'
import { newDatabase } from './databases'
import { newSession, WITHOUT_POLLING } from './kit'

function defineSteps(durably: SqlDurably) {
  durably.use(withLogPersistence())
  const child = durably.defineJob({ name: 'child', input: z.object({}) }, () => 1)
  return durably.defineJob({ name: 'parent', input: z.object({}) }, async (ctx) => {
    const one = await ctx.wait('one', await ctx.trigger('child', child, {}))
    return ctx.transaction('two', async (trx) => {
      const { rows } = await sql<{ readonly two: number }>`select ${one}::integer + 1 as two`.execute(trx)
      return rows[0]?.two
    })
  })
}

async function schemasWithTables(url: string): Promise<readonly string[]> {
  const session = await newSession(url)
  const { rows } = await session.query<{ readonly schema: string }>(
    "select distinct table_schema as schema from information_schema.tables where table_name like 'durably%' order by 1",
  )
  return rows.map(({ schema }) => schema)
}

describe('postgres({ schema })', () => {
  it.each(['jobs', 'My "own".jobs'])('keeps everything in the schema %s, beside others', async (schema) => {
    const url = await newDatabase()
    const inSchema = await openMigrated(postgres({ connectionString: url, schema }), WITHOUT_POLLING)
    expect(await schemasWithTables(url)).toEqual([schema])
    await inSchema.migrate()
    const beside = await openMigrated(postgres({ connectionString: url }), WITHOUT_POLLING)
    const job = defineSteps(inSchema)
    inSchema.start()
    expect(await job.triggerAndWait({})).toMatchObject({ output: 2 })
    expect(await inSchema.counts()).toMatchObject({ completed: 2 })
    expect(await beside.getRuns()).toEqual([])
    const ids = (await inSchema.getRuns()).map(({ id }) => id)
    expect(ids).toHaveLength(2)
    const rows = await inSchema.db.withSchema(schema).selectFrom('durably_runs').select('id').execute()
    expect(rows.map(({ id }) => id).sort()).toEqual(ids.sort())
    expect(await beside.db.selectFrom('durably_runs').select('id').execute()).toEqual([])
  })

  it('says who can create the schema when this role may not', async () => {
    const { url, drop } = await createDatabase()
    const admin = await newSession(url)
    const role = `visitor_${new URL(url).pathname.slice(-12)}`
    try {
      await admin.query(`create role ${role} login`)
      const asVisitor = new URL(url)
      asVisitor.username = role
      const open = () => openOn(postgres({ connectionString: asVisitor.href, schema: 'jobs' }), WITHOUT_POLLING)
      await expect(open().migrate()).rejects.toMatchObject({
        code: 'MIGRATION_FAILED',
        message: expect.stringContaining('create schema "jobs" authorization'),
      })
      // As a server that speaks another language says it.
      await admin.query(`create function speak() returns event_trigger language plpgsql as $$ begin
        raise exception 'keine Berechtigung' using errcode = '42501'; end $$`)
      await admin.query(
        "create event trigger speak on ddl_command_start when tag in ('CREATE SCHEMA') execute function speak()",
      )
      await expect(open().migrate()).rejects.toMatchObject({
        code: 'MIGRATION_FAILED',
        message: expect.stringContaining('create schema "jobs" authorization'),
      })
      // Something else is forbidden to whom may create schemas.
      const asOwner = openOn(postgres({ connectionString: url, schema: 'jobs' }), WITHOUT_POLLING)
      await expect(asOwner.migrate()).rejects.toMatchObject({ code: 'STORAGE_READONLY', message: 'keine Berechtigung' })
      await admin.query('drop event trigger speak')
      await admin.query(`create schema jobs authorization ${role}`)
      const durably = open()
      await durably.migrate()
      expect(await durably.counts()).toMatchObject({ pending: 0 })
      await durably.close()
    } finally {
      await drop()
      const again = await newSession(url.replace(new URL(url).pathname, '/postgres'))
      await again.query(`drop role if exists ${role}`)
    }
  })

  it.each(['', 'x'.repeat(64), 7, 'a\0b'])('does not take %j', (schema) => {
    const config = { connectionString: 'postgres://localhost/app', schema: schema as string }
    expect(() => postgres(config)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })
})
