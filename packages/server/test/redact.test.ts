import { expect, it } from 'vitest'
import { z } from 'zod'
import type { RedactedField } from '../src/options'
import { ROUTES } from '../src/routes'
import { type Api, openApi, toRequest } from './api'
import { parkRun } from './parked'
import { followRun } from './sse'

const SECRET = 'card 4000-1234'
const HIDDEN = 'card ****'
const PAYLOAD = { card: SECRET }

const FIELDS: Readonly<Record<RedactedField['field'], true>> = {
  ...{ payload: true, output: true, error: true, errorDetail: true, checkpoint: true, progress: true },
  ...{ chunk: true, message: true, data: true, explanation: true },
}

/** Where values of jobs are, one of them is the secret. */
async function openWithSecrets() {
  const fields = new Set<string>()
  const api = openApi({
    authorize: () => ({ actor: 'ann', tenant: null, allow: 'all' }),
    redact(value, { field }) {
      fields.add(field)
      return JSON.parse(JSON.stringify(value).replaceAll(SECRET, HIDDEN))
    },
  })
  const { durably, schedules, inbox } = api
  const input = z.unknown()
  durably.defineJob({ name: 'fails', input }, async (ctx) => {
    ctx.progress(1, 2, SECRET)
    ctx.log.warn(SECRET, PAYLOAD)
    await ctx.stream('speech', async (emit) => {
      await emit(SECRET)
      return SECRET
    })
    await ctx.run('pay', async ({ save, log }) => {
      log.info(SECRET)
      await save(PAYLOAD)
      throw Object.assign(new Error(SECRET), PAYLOAD)
    })
  })
  const job = durably.defineJob({ name: 'pays', input }, () => PAYLOAD)
  const retry = { maxAttempts: 2, delay: 3_600_000 }
  durably.defineJob({ name: 'tries again', input, retry }, () => Promise.reject(new Error(SECRET)))
  durably.defineJob({ name: 'asks', input }, async (ctx) => {
    await ctx.waitFor('card', { schema: input })
    await ctx.waitFor('approval', { schema: input })
  })
  const begin = async (jobName: string) => (await durably.trigger(jobName, PAYLOAD)).id
  const [failed, asking] = [await begin('fails'), await begin('asks')]
  const others = [await begin('pays'), await begin('tries again')]
  await durably.signal(asking, 'card', SECRET)
  await durably.runUntilIdle()
  const parked = [await parkRun(durably, {}, PAYLOAD), await parkRun(durably, {}, PAYLOAD)] as const
  const as = { actor: 'ann' }
  await schedules.create('daily', { job, payload: PAYLOAD, every: 3_600_000, as })
  await durably.signal(asking, 'other', SECRET, { as })
  await durably.publish({ type: 'paid', payload: PAYLOAD })
  await inbox.drain()
  return { api, fields, runs: { failed, asking, parked }, ids: [failed, asking, ...others, ...parked] }
}

/** As text: of a stream, all that there is to tell at present. */
async function readAt(api: Api, path: string, id: string): Promise<string> {
  const address = path.replace(':id', id)
  if (path === '/events') {
    const { body } = await api.handler(toRequest(`GET ${address}`))
    return String(await body?.cancel())
  }
  if (path !== '/runs/:id/events') return JSON.stringify((await api.ask(`GET ${address}`)).json)
  const count = (await api.durably.getEvents(id)).length
  const follower = await followRun(api.handler, id)
  const messages = await follower.until(({ length }) => length >= count)
  await follower.leave()
  expect(messages.length).toBeGreaterThanOrEqual(count)
  return JSON.stringify(messages)
}

it('lets values of jobs be changed before they leave the server, wherever they are', async () => {
  const { api, fields, ids } = await openWithSecrets()
  for (const { path } of ROUTES.filter(({ method }) => method === 'GET')) {
    const answers = await Promise.all((path.includes(':id') ? ids : ['']).map((id) => readAt(api, path, id)))
    expect(answers.join('\n'), path).not.toContain(SECRET)
    if (/^\/(runs|waits|schedules|inbox$)/.test(path)) expect(answers.join('\n'), path).toContain(HIDDEN)
    // What somebody did has no values of jobs, so that nothing has to be hidden.
    if (path === '/audit') expect(answers.join('\n')).toContain('"schedules.create"')
  }
  expect([...fields].sort()).toEqual(Object.keys(FIELDS).sort())
})

it('lets them be changed in what is answered to commands, and keeps them as they are', async () => {
  const { api, runs } = await openWithSecrets()
  const [mended, given] = runs.parked
  const commands: readonly (readonly [line: string, body?: unknown])[] = [
    ['POST /runs', { jobName: 'pays', payload: PAYLOAD }],
    ['POST /runs/batch', { jobName: 'pays', runs: [{ payload: PAYLOAD }] }],
    [`POST /runs/${runs.failed}/fork`, {}],
    [`POST /runs/${runs.failed}/retry`],
    [`POST /runs/${runs.asking}/cancel`],
    [`POST /runs/${mended}/unpark`],
    [`POST /runs/${given}/fail`],
    ['POST /schedules/pause', { name: 'daily' }],
    ['POST /schedules/resume', { name: 'daily' }],
  ]
  for (const [line, body] of commands) {
    const { status, json } = await api.ask(line, { body })
    expect(status, line).toBeLessThan(300)
    expect(JSON.stringify(json), line).toContain(HIDDEN)
    expect(JSON.stringify(json), line).not.toContain(SECRET)
  }
  expect(await api.durably.getRun(runs.failed)).toMatchObject({ payload: PAYLOAD })
})

it('says of which run and which value it is', async () => {
  const { durably, ask } = openApi({ redact: (_value, { run, field }) => ({ ...run, field }) })
  const { id } = await durably.trigger('job', PAYLOAD, { tenant: 'acme' })
  const { payload } = (await ask(`GET /runs/${id}`)).json
  expect(payload).toEqual({ id, jobName: 'job', tenant: 'acme', field: 'payload' })
})

it('is told of when it throws, by a stream as well, which ends without the value', async () => {
  const { durably, ask, handler } = openApi({
    redact: () => {
      throw new Error('no such card')
    },
  })
  const told: string[] = []
  durably.onError((error) => void told.push(error instanceof Error ? error.message : String(error)))
  const { id } = await durably.trigger('job', PAYLOAD)
  await durably.runUntilIdle()
  expect((await ask(`GET /runs/${id}`)).status).toBe(500)
  const follower = await followRun(handler, id)
  expect(JSON.stringify(await follower.toEnd())).not.toContain(SECRET)
  expect(told).toEqual(['no such card', 'no such card'])
})

it('shows nothing where what hides answers with a promise', async () => {
  const { durably, handler } = openApi({ redact: async (value) => value })
  const job = durably.defineJob({ name: 'job', input: z.unknown() }, () => {})
  const { id } = await job.trigger(PAYLOAD)
  const response = await handler(toRequest(`GET /runs/${id}`))
  expect(response.status).toBe(500)
  expect(await response.text()).not.toContain(SECRET)
})
