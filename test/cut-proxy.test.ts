import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type CutProxy, startCutProxy } from './cut-proxy'
import { createDatabase, type PostgresDatabase } from './postgres'

const INSERT = 'insert into numbers values ($1)'

describe('a proxy that cuts', () => {
  let database: PostgresDatabase
  let proxy: CutProxy
  const clients: pg.Client[] = []

  beforeEach(async () => {
    database = await createDatabase()
    const { hostname, port } = new URL(database.url)
    proxy = await startCutProxy({ host: hostname, port: Number(port) })
    await (await connect(database.url)).query('create table numbers (n integer)')
  })

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.end().catch(() => {})))
    await proxy.close()
    await database.drop()
  })

  async function connect(url: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    clients.push(client)
    await client.connect()
    return client
  }

  async function numbers(): Promise<readonly number[]> {
    const { rows } = await (await connect(database.url)).query<{ n: number }>('select n from numbers order by n')
    return rows.map(({ n }) => n)
  }

  it('lets everything else through', async () => {
    const client = await connect(proxy.through(database.url))
    const text = 'x'.repeat(300_000)
    const { rows } = await client.query<{ text: string }>('select $1::text as text', [text])
    expect(rows[0]?.text).toBe(text)
    expect(proxy.attempts).toHaveLength(1)
  })

  it.each([
    ['by its text', { text: INSERT, values: [1] }],
    ['prepared', { name: 'insert', text: INSERT, values: [1] }],
    ['without values', 'insert into numbers values (1)'],
  ])('the answer only, and the server has done what it was asked, %s', async (_name, query) => {
    const client = await connect(proxy.through(database.url))
    if (typeof query === 'object' && 'name' in query) await client.query({ ...query, values: [0] })
    const before = await numbers()
    const cut = proxy.cutAnswer((sql) => sql.startsWith('insert'))
    await expect(client.query(query)).rejects.toThrow()
    expect(await cut).toMatch(/^insert into numbers/)
    expect(await numbers()).toEqual([...before, 1])
  })

  it('the answer to a COMMIT, and what was committed stays', async () => {
    const client = await connect(proxy.through(database.url))
    const cut = proxy.cutAnswer((sql) => sql === 'commit')
    await client.query('begin')
    await client.query(INSERT, [2])
    await expect(client.query('commit')).rejects.toThrow()
    await cut
    expect(await numbers()).toEqual([2])
  })

  it('before the request, which the server never sees', async () => {
    const client = await connect(proxy.through(database.url))
    const cut = proxy.cutRequest((sql) => sql === 'commit')
    await client.query('begin')
    await client.query(INSERT, [2])
    await expect(client.query('commit')).rejects.toThrow()
    await cut
    expect(await numbers()).toEqual([])
  })

  it('everything, and counts who comes back', async () => {
    const client = await connect(proxy.through(database.url))
    const query = client.query('select pg_sleep(10)')
    proxy.drop()
    await expect(query).rejects.toThrow()
    await connect(proxy.through(database.url))
    expect(proxy.attempts).toHaveLength(2)
  })
})
