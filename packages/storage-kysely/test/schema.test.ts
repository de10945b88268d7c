import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { createKyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'

/** The migrated schema, reviewed like code: `pnpm vitest run test/schema.test.ts -u` writes it anew. */
async function schemaWith(tablePrefix: string): Promise<string> {
  const database = new Database(':memory:')
  const storage = createKyselyStorage({ dialect: betterSqlite3({ database }), tablePrefix })
  await storage.migrate()
  const rows = database
    .prepare<[], { sql: string }>(
      'select sql from sqlite_master where sql is not null order by tbl_name, type desc, name',
    )
    .all()
  await storage.close()
  return rows.map(({ sql }) => `${sql.replaceAll(', "', ',\n  "')};\n`).join('\n')
}

it('is the committed schema', async () => {
  await expect(await schemaWith('durably_')).toMatchFileSnapshot('./schema.sql')
})

it('is the same under other names', async () => {
  const committed = readFileSync(new URL('./schema.sql', import.meta.url), 'utf8')
  expect(await schemaWith('')).toBe(committed.replaceAll('durably_', ''))
})

it("has spec 0's columns under spec 0's names", async () => {
  const database = new Database(':memory:')
  const storage = createKyselyStorage({ dialect: betterSqlite3({ database }), tablePrefix: '' })
  await storage.migrate()
  const columns = (table: string) =>
    database
      .prepare<[string], { name: string }>('select name from pragma_table_info(?)')
      .all(table)
      .map(({ name }) => name)
  expect(columns('runs')).toEqual(
    expect.arrayContaining([
      ...[
        'id',
        'job_name',
        'payload',
        'status',
        'idempotency_key',
        'concurrency_key',
        'current_step_index',
        'progress',
      ],
      ...['output', 'error', 'heartbeat_at', 'created_at', 'updated_at'],
    ]),
  )
  expect(columns('steps')).toEqual(
    expect.arrayContaining([
      'id',
      'run_id',
      'name',
      'index',
      'status',
      'output',
      'error',
      'started_at',
      'completed_at',
    ]),
  )
  expect(columns('logs')).toEqual(['id', 'run_id', 'step_name', 'level', 'message', 'data', 'timestamp'])
  expect(columns('schema_versions')).toEqual(['version', 'applied_at', 'min_reader'])
  await storage.close()
})
