import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { TLSSocket } from 'node:tls'
import { sql } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { startCutProxy } from '../../../../test/cut-proxy'
import { selfSigned } from '../../../../test/self-signed'
import type { SqlDurably } from '../../src/index'
import { postgres } from '../../src/postgres'
import { openOn } from '../instances'
import { newPlace, newPool, WITHOUT_POLLING } from './kit'

const defineNothing = (durably: SqlDurably) => durably.defineJob({ name: 'nothing', input: z.object({}) }, () => {})

/** A server that speaks TLS, and nothing after that. */
async function startDistrusted(): Promise<string> {
  const identity = selfSigned('localhost')
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write('S')
      new TLSSocket(socket, { isServer: true, ...identity }).on('error', () => {})
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `postgres://app@localhost:${(server.address() as AddressInfo).port}/app?sslmode=require`
}

describe('what a trigger rejects with', () => {
  it('does not leave open what happened when the server was never reached', async () => {
    const nowhere = postgres({ connectionString: 'postgres://app@127.0.0.1:1/app', listen: false })
    await expect(defineNothing(openOn(nowhere)).trigger({})).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      mayHaveArrived: false,
    })
  })

  it('says that it is not known when the answer was lost', async () => {
    const place = await newPlace()
    const { hostname, port } = new URL(place.url)
    const proxy = await startCutProxy({ host: hostname, port: Number(port) })
    onTestFinished(() => proxy.close())
    const durably = openOn(postgres({ connectionString: proxy.through(place.url), listen: false }), WITHOUT_POLLING)
    const outcome = defineNothing(durably)
      .trigger({})
      .catch((error: unknown) => error)
    for (let cut = 0; cut < 4; cut++) await proxy.cutAnswer((text) => /insert into "durably_runs"/.test(text))
    expect(await outcome).toMatchObject({ code: 'UNKNOWN_OUTCOME' })
  })
})

describe('what is given as transaction', () => {
  it.each(['its own pool', 'a pool of the application'])(
    'and was idle for too long is explained, on %s',
    async (whose) => {
      const place = await newPlace()
      const dialect =
        whose === 'its own pool' ? postgres({ connectionString: place.url }) : postgres({ pool: newPool(place.url) })
      const durably = openOn(dialect, WITHOUT_POLLING)
      const job = defineNothing(durably)
      const explained = { message: expect.stringContaining('idle_in_transaction_session_timeout') }
      const open = durably.transaction(async (transaction) => {
        // Both at once: from now on nothing may be sent for a while.
        const { rows } = await sql<{ readonly pid: number }>`select pg_backend_pid() as pid,
          set_config('idle_in_transaction_session_timeout', '20', true)`.execute(transaction)
        const isThere = 'select 1 from pg_stat_activity where pid = $1'
        await expect.poll(() => place.query(isThere, [rows[0]?.pid])).toEqual([])
        await expect(job.trigger({}, { transaction })).rejects.toMatchObject({
          code: 'TRANSACTION_TIMEOUT',
          ...explained,
        })
        await sql`select 1`.execute(transaction)
      })
      await expect(open).rejects.toMatchObject(explained)
      expect(await durably.getRuns()).toEqual([])
    },
  )
})

describe('a server whose certificate nobody has signed', () => {
  it('is told from one that is away, with what to do about it', async () => {
    const durably = openOn(postgres({ connectionString: await startDistrusted(), listen: false }))
    await expect(durably.migrate()).rejects.toMatchObject({
      code: 'STORAGE_CANNOT_OPEN',
      message: expect.stringMatching(/self-signed certificate.*sslrootcert.*sslmode=no-verify/),
    })
  })
})

describe('the connection that listens', () => {
  it('ends with stop(), and is there again after start()', async () => {
    const place = await newPlace()
    const durably = place.open()
    for (let term = 0; term < 2; term++) {
      durably.start()
      await expect.poll(() => place.listeners()).toHaveLength(1)
      await durably.stop()
      await expect.poll(() => place.listeners()).toEqual([])
    }
  })

  it('stays for who waits for a run', async () => {
    const place = await newPlace()
    const [api, worker] = [place.open(), place.open()]
    const job = defineNothing(api)
    defineNothing(worker)
    const { id } = await job.trigger({})
    const ended = job.wait(id)
    await expect.poll(() => place.listeners()).toHaveLength(1)
    await api.stop()
    worker.start()
    expect(await ended).toMatchObject({ id })
  })
})
