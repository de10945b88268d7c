import { createDurably, type JobContext } from '@coji/durably'
import { libsql } from '@coji/durably/libsql'
import { withLogPersistence } from '@coji/durably/plugins'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { call, newFile } from './kit'

let file = ''

function open(body: (ctx: JobContext) => Promise<unknown>) {
  const durably = createDurably({ dialect: libsql(`file:${file}`), logger: null })
  durably.use(withLogPersistence())
  onTestFinished(() => durably.close())
  durably.defineJob({ name: 'ask', input: z.unknown() }, body)
  return durably
}

const durably = (...args: readonly string[]) => call([...args, '--db', file])

beforeEach(() => {
  file = newFile()
})

async function waiting(): Promise<{ readonly id: string; readonly app: ReturnType<typeof open> }> {
  const app = open((ctx) => ctx.waitFor('approval', { schema: z.object({ ok: z.boolean() }) }))
  await app.migrate()
  const { id } = await app.trigger('ask', {})
  await app.runUntilIdle()
  return { id, app }
}

/** Runs that have met other code than that which began them. */
async function parked(): Promise<{ readonly ids: readonly string[]; readonly app: ReturnType<typeof open> }> {
  const before = open(async (ctx) => {
    await ctx.run('x', () => 1)
    await ctx.waitFor('deploy')
  })
  await before.migrate()
  const ids: string[] = []
  for (let n = 0; n < 3; n++) ids.push((await before.trigger('ask', {})).id)
  await before.runUntilIdle()
  const app = open((ctx) => ctx.waitFor('x'))
  for (const id of ids) await app.signal(id, 'deploy')
  await app.runUntilIdle()
  for (const id of ids) expect(await app.getRun(id)).toMatchObject({ waitingFor: { kind: 'unpark' } })
  return { ids, app }
}

it('hands a run the signal that it waits for, once under a key', async () => {
  const { id, app } = await waiting()
  expect(await durably('signal', id, 'approval', '{ "ok": true }', '--dedupe-key', 'k')).toEqual({
    ...{ code: 0, out: `Run ${id} of ask has the signal "approval".\n`, err: '' },
  })
  expect((await durably('signal', id, 'approval', '{ "ok": false }', '--dedupe-key', 'k')).out).toContain('already')
  await app.runUntilIdle()
  expect(await app.getRun(id)).toMatchObject({ status: 'completed', output: { ok: true } })
  expect(await durably('signal', id, 'approval')).toMatchObject({
    code: 1,
    err: `Run ${id} is completed: nothing waits.\n`,
  })
})

it('says so when a run does not wait for the signal yet, and refuses what is no JSON', async () => {
  const { id } = await waiting()
  const early = await durably('signal', id.slice(0, 20), 'aproval', '--json')
  expect(JSON.parse(early.out)).toEqual({ id, name: 'aproval', deduplicated: false })
  expect(early.err).toBe('It waits for approval at present; the signal is kept until it waits for "aproval".\n')
  expect(await durably('signal', id, 'approval', 'yes')).toMatchObject({
    ...{ code: 2, out: '', err: `The payload is no JSON: yes. A text stands in quotes of its own: '"yes"'.\n` },
  })
})

it('lets parked runs go on, or ends them, and says how in a terminal', async () => {
  const { ids, app } = await parked()
  const [first = '', second = ''] = ids
  const { out } = await durably('run', first)
  expect(out).toContain(`\`durably unpark ${first}\` lets it go on`)
  expect(out).toContain(`\`durably unpark --fail ${first}\` ends it`)
  expect((await durably('unpark', '--job', 'ask', '--dry-run')).out).toContain('Would unpark 3 runs. Nothing was done.')
  expect((await durably('unpark', '--fail', first)).out).toBe(`Run ${first} of ask is failed.\n`)
  expect(await app.getRun(first)).toMatchObject({ status: 'failed' })
  expect(await durably('unpark', first)).toMatchObject({
    ...{ code: 1, err: `Run ${first} is failed. durably unpark takes a run that is parked.\n` },
  })
  expect((await durably('unpark', second)).out).toBe(`Run ${second} of ask goes on as soon as a worker is free.\n`)
  expect((await durably('unpark', '--all', '--yes')).out).toBe('1 run goes on as soon as workers are free.\n')
  const back = open(async (ctx) => {
    await ctx.run('x', () => 1)
    await ctx.waitFor('deploy')
  })
  await back.runUntilIdle()
  for (const id of ids.slice(1)) expect(await back.getRun(id)).toMatchObject({ status: 'completed' })
  expect((await durably('unpark', '--all', '--yes')).out).toBe('There is no run to unpark.\n')
})
