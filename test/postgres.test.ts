import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createDatabase, type OwnPostgres, postgresUrl, startOwnPostgres } from './postgres'
import { spawnKeeper } from './postgres-keeper.ts'

async function query(url: string, text: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

async function withServer(use: (server: OwnPostgres) => Promise<void>): Promise<void> {
  const server = await startOwnPostgres()
  try {
    await use(server)
  } finally {
    await server.end()
  }
}

describe('the Postgres of the tests', () => {
  it('is one server for all, with databases of their own', async () => {
    const [one, other] = await Promise.all([createDatabase(), createDatabase()])
    await query(one.url, 'create table mine (id integer)')
    await expect(query(other.url, 'select * from mine')).rejects.toMatchObject({ code: '42P01' })
    expect(new URL(one.url).port).toBe(new URL(other.url).port)
    const [row] = await query(one.url, "select current_setting('server_version_num')::integer / 10000 as major")
    if (process.env['DATABASE_URL'] === undefined) expect(row).toEqual({ major: 18 })
    await Promise.all([one.drop(), other.drop()])
    await expect(query(one.url, 'select 1')).rejects.toMatchObject({ code: '3D000' })
    expect(await query(await postgresUrl(), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it.each(['fast', 'immediate'] as const)('restarts a server of its own (%s) with what was committed', async (mode) => {
    await withServer(async (server) => {
      const { url } = await server.createDatabase()
      await query(url, 'create table kept as select 7 as n')
      await server.restart(mode)
      expect(await query(url, 'select n from kept')).toEqual([{ n: 7 }])
      expect(await query(url, 'show fsync')).toEqual([{ fsync: 'on' }])
      await server.stop(mode)
      await expect(query(url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    })
  })

  it('is asked for on a connection of its own each time, which nobody has to have seen closed', async () => {
    const keeper = await spawnKeeper({})
    const { headers } = await fetch(`${keeper.url}/log`)
    expect(headers.get('connection')).toBe('close')
    await keeper.end()
  })

  it('does not outlive tests that were killed', async () => {
    const program = fileURLToPath(new URL('./postgres-keeper.mjs', import.meta.url))
    const script = `
      const keeper = require('node:child_process').spawn(process.execPath, [${JSON.stringify(program)}, '{}'],
        { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
      keeper.stdout.once('data', async (port) => {
        const { url } = await (await fetch('http://127.0.0.1:' + String(port).trim() + '/start')).json()
        console.log(url)
      })`
    const tests = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(tests.stdout, 'data')) as [Buffer]
    const url = line.toString().trim()
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
    tests.kill('SIGKILL')
    await expect.poll(() => query(url, 'select 1').catch(({ code }: { code: string }) => code)).toBe('ECONNREFUSED')
  })
})
