import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { createDurably } from '@coji/durably'
import { betterSqlite3 } from '@coji/durably/better-sqlite3'
import { createScheduler } from '@coji/durably-cluster'
import { createDurablyClient } from '@coji/durably-server/client'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { described } from '../../server/test/described'
import { type Ids, newFile, IN_LANE, type Program, tempFile, usePrograms } from './kit'

const programs = usePrograms()

async function serve(address: string, ...args: readonly string[]) {
  const site = programs.start('durably', ['dashboard', '--db', address, '--port', '0', ...args])
  onTestFinished(() => void site.child.kill('SIGKILL'))
  const [url] = await site.said(/^http:\S+$/m)
  return { site, url, client: createDurablyClient({ url: `${url}/api`, fetch: described(fetch, '/api') }) }
}

/** With a `Host` of one's own, which fetch does not let one choose. */
async function statusFor(url: string, host: string): Promise<number | undefined> {
  const asking = request(`${url}/api/me`, { headers: { host } }).end()
  const [response] = await once(asking, 'response')
  response.resume()
  return response.statusCode
}

describe.each(IN_LANE)('beside an application at work on $name', ({ open }) => {
  let place: Awaited<ReturnType<typeof open>>
  let worker: Program
  let ids: Ids

  beforeAll(async () => {
    place = await open()
    worker = programs.start('worker', [place.address])
    const [first] = await worker.said(/^\{.*\}$/m)
    ids = JSON.parse(first)
    return async () => {
      worker.child.kill('SIGKILL')
      await worker.ended
      await place.dispose()
    }
  })

  it('shows everything, live, and changes nothing', async () => {
    const { site, url, client } = await serve(place.address)
    expect(await (await fetch(url)).text()).toContain('the page')
    expect(await client.me()).toMatchObject({ actions: ['read'], history: true })
    expect(await client.getRun(ids.done)).toMatchObject({ status: 'completed', output: 6 })
    await expect(client.retry(ids.refused[0] ?? '')).rejects.toThrow('You may not')
    await expect(client.trigger('sum', { numbers: [] })).rejects.toThrow('You may not')

    const types: string[] = []
    for await (const { type } of client.subscribe(ids.talking)) {
      types.push(type)
      if (type === 'run:suspend') worker.child.stdin?.write('sesame\n')
    }
    expect(types.at(-1)).toBe('run:complete')

    site.child.kill('SIGINT')
    expect(await site.ended).toMatchObject({ code: 0, err: expect.stringContaining('read-only (--write to change') })
  })

  it('changes runs where that was said, many of them at once', async () => {
    const { client } = await serve(place.address, '--write')
    expect(await client.cancel(ids.late)).toMatchObject({ status: 'cancelled' })
    const [id = ''] = ids.refused
    const before = await client.getRun(id)
    expect(await client.retry(id)).toMatchObject({ status: 'pending', attempt: (before?.attempt ?? 0) + 1 })
    await expect.poll(async () => (await client.getRun(id))?.status).toBe('failed')
    const attempts = async () => (await client.getRuns({ jobName: 'charge' })).map(({ attempt }) => attempt)
    const first = await attempts()
    const { id: bulk } = await client.bulk('retry', { status: ['failed'], jobName: ['charge'] })
    expect(await client.wait(bulk)).toMatchObject({ output: { done: first.length, skipped: 0 } })
    expect(await attempts()).toEqual(first.map((attempt) => attempt + 1))
    // It executes nothing else: the application knows no such job, and neither does the command.
    expect(await client.getRun(ids.unknown)).toMatchObject({ status: 'pending', startedAt: null })
  })
})

describe('on a file', () => {
  const { file, remove } = tempFile()
  beforeAll(async () => {
    const durably = createDurably({ dialect: betterSqlite3(file) })
    await durably.migrate()
    await durably.trigger('job', {}, { tenant: 'acme' })
    await durably.trigger('job', {}, { tenant: 'other' })
    const job = durably.defineJob({ name: 'report', input: z.unknown() }, () => {})
    const nightly = { job, payload: { n: 1 }, cron: '0 2 * * *', tenant: 'acme' }
    await createScheduler(durably).create('nightly', nightly)
    await durably.publish({ type: 'paid', payload: { n: 2 }, tenant: 'acme' })
    await durably.close()
    return remove
  })

  it('answers to the names of this machine alone, and writes from its own page alone', async () => {
    const { url } = await serve(file, '--write')
    const { port } = new URL(url)
    expect(await statusFor(url, `localhost:${port}`)).toBe(200)
    expect(await statusFor(url, `127.0.0.1:${port}`)).toBe(200)
    expect(await statusFor(url, `evil.example:${port}`)).toBe(403)
    const foreign = { method: 'POST', headers: { origin: 'https://evil.example', 'content-type': 'application/json' } }
    expect((await fetch(`${url}/api/runs`, { ...foreign, body: '{"jobName":"job"}' })).status).toBe(403)
  })

  it('shows one tenant where that was said', async () => {
    const { client } = await serve(file, '--tenant', 'acme')
    expect((await client.getRuns()).map(({ tenant }) => tenant)).toEqual(['acme'])
    // Schedules and messages are shown as well, and left as they are.
    expect((await client.schedules()).schedules).toMatchObject([{ name: 'nightly', payload: { n: 1 } }])
    expect((await client.messages()).messages).toMatchObject([{ type: 'paid', payload: { n: 2 }, processedAt: null }])
    await expect(client.pauseSchedule('nightly')).rejects.toThrow('You may not')
    await expect(client.replayMessages({ type: 'paid' })).rejects.toThrow('You may not')
  })

  it('says where it is in JSON as well', async () => {
    const site = programs.start('durably', ['dashboard', '--db', file, '--port', '0', '--json'])
    onTestFinished(() => void site.child.kill('SIGKILL'))
    const [line] = await site.said(/^\{.*\}$/m)
    expect((await fetch(JSON.parse(line).url)).status).toBe(200)
  })

  it('says so when the port is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    onTestFinished(() => void taken.close())
    const { port } = taken.address() as AddressInfo
    const ended = await programs.durably('dashboard', '--db', file, '--port', String(port))
    expect(ended).toEqual({
      code: 1,
      out: '',
      err: `Port ${port} of 127.0.0.1 is taken. Choose another --port, or none.\n`,
    })
    const elsewhere = await programs.durably('dashboard', '--db', file, '--host', '192.0.2.1', '--port', '0')
    expect(elsewhere).toMatchObject({ code: 1, err: '192.0.2.1 is no address of this machine.\n' })
  })

  it.runIf(process.platform === 'linux')('opens a browser where that was said', async () => {
    const folder = join(dirname(newFile()), 'bin')
    mkdirSync(folder)
    const opened = join(folder, 'opened')
    writeFileSync(join(folder, 'xdg-open'), `#!/bin/sh\necho "$1" > ${opened}.part && mv ${opened}.part ${opened}\n`)
    chmodSync(join(folder, 'xdg-open'), 0o755)
    const env = { PATH: `${folder}:${process.env['PATH']}` }
    const site = programs.start('durably', ['dashboard', '--db', file, '--port', '0', '--open'], { env })
    onTestFinished(() => void site.child.kill('SIGKILL'))
    const [url] = await site.said(/^http:\S+$/m)
    await expect.poll(() => readFileSync(opened, 'utf8').trim()).toBe(url)
  })
})
