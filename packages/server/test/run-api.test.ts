import {
  CancelledError,
  ConflictError,
  createDurably,
  HistoryRequiredError,
  InvalidOptionError,
  NotFoundError,
  RunFailedError,
  SerializationError,
  TimeoutError,
  ValidationError,
  type Durably,
  type RunFilter,
  type ScopedDurably,
  type Storage,
} from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { createKyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createDurablyHandler } from '../src'
import { createDurablyClient, type DurablyClient } from '../src/client'
import { described } from './described'
import { mend, parkRun } from './parked'

/** What engine and client have in common. The engine waits by the handle of a job. */
type RunApi = Omit<ScopedDurably, 'publish' | 'purge' | 'trigger' | 'batchTrigger'> & {
  wait: DurablyClient['wait']
  trigger(
    jobName: string,
    payload?: unknown,
    options?: Parameters<DurablyClient['trigger']>[2],
  ): ReturnType<DurablyClient['trigger']>
  batchTrigger(
    jobName: string,
    items: Parameters<DurablyClient['batchTrigger']>[1],
  ): ReturnType<DurablyClient['batchTrigger']>
}

const NOBODY = '01J00000000000000000000000'

const STORAGES: Readonly<Record<string, () => Storage>> = {
  memory: createMemoryStorage,
  'better-sqlite3': () => createKyselyStorage({ dialect: betterSqlite3({ database: new Database(':memory:') }) }),
}

interface Opened {
  readonly durably: Durably
  readonly jobs: Readonly<Record<string, Pick<RunApi, 'wait'>>> & { readonly same: Pick<RunApi, 'wait'> }
}

const SIDES: Readonly<Record<string, (opened: Opened) => RunApi>> = {
  engine: ({ durably, jobs }) => ({
    ...durably,
    async wait(id, options) {
      const { jobName = 'same' } = (await durably.getRun(id)) ?? {}
      return (jobs[jobName] ?? jobs.same).wait(id, options)
    },
  }),
  client: ({ durably }) => clientOf(durably),
}

function clientOf(durably: Durably): DurablyClient {
  const handler = described(createDurablyHandler(durably, { allowAnonymous: true, maxPageSize: 3 }))
  return createDurablyClient({ url: 'http://app.test', fetch: handler })
}

async function open(storage: Storage, history: boolean): Promise<Opened> {
  const durably = createDurably({ storage, logger: null })
  onTestFinished(() => durably.close())
  if (history) durably.use(withLogPersistence())
  await durably.migrate()
  return { durably, jobs: defineJobs(durably) }
}

function defineJobs(durably: Durably) {
  const input = z.unknown()
  const retry = { maxAttempts: 2, delay: 3_600_000 }
  return {
    steps: durably.defineJob({ name: 'steps', input: z.object({ count: z.number() }) }, async (ctx, { count }) => {
      for (let n = 0; n < count; n++) {
        ctx.log.info(`line ${n}`, { n })
        await ctx.run(`step ${n}`, () => n)
      }
      return { count }
    }),
    ask: durably.defineJob({ name: 'ask', input }, (ctx) => ctx.waitFor('answer', { schema: z.unknown() })),
    same: durably.defineJob({ name: 'same', input }, (_ctx, payload) => payload as string),
    coded: durably.defineJob({ name: 'coded', input }, () => {
      throw Object.assign(new Error('no money'), { code: 'E_PAY' })
    }),
    retried: durably.defineJob({ name: 'retried', input, retry }, () => {
      throw new Error('later')
    }),
    fail: durably.defineJob({ name: 'fail', input }, () => {
      throw new Error('it broke')
    }),
  }
}

/** Class, code, message and what else it has: everything that somebody may depend on. */
async function refusalOf(asked: Promise<unknown>) {
  const error = await asked.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return error instanceof Error ? { ...error, kind: error.constructor, message: error.message } : error
}

async function read<T>(stream: AsyncIterable<T>, count = Number.POSITIVE_INFINITY): Promise<T[]> {
  const all: T[] = []
  for await (const each of stream) {
    all.push(each)
    if (all.length >= count) break
  }
  return all
}

describe.each(Object.entries(STORAGES))('on %s', (_storage, createStorage) => {
  describe.each(Object.entries(SIDES))('the run API of the %s', (_side, toApi) => {
    async function begin(history = true) {
      const opened = await open(createStorage(), history)
      const { durably } = opened
      const api = toApi(opened)
      const ran = async (jobName = 'steps', payload: unknown = { count: 2 }) => {
        const { id } = await api.trigger(jobName, payload)
        await durably.runUntilIdle()
        return id
      }
      return { durably, api, ran }
    }

    it('triggers runs, once for a key', async () => {
      const { durably, api } = await begin()
      const options = {
        ...{ idempotencyKey: 'key', concurrencyKey: 'ck', concurrencyLimit: 2, holdKeyWhileWaiting: true, priority: 5 },
        ...{ runAt: new Date('2099-01-01T00:00:00Z'), labels: { team: 'red' } },
      }
      const run = await api.trigger('steps', { count: 2 }, options)
      expect(run).toEqual({ ...(await durably.getRun(run.id)), deduplicated: false })
      expect(run).toMatchObject({ priority: 5, labels: { team: 'red' }, availableAt: '2099-01-01T00:00:00.000Z' })
      expect(await api.trigger('steps', { count: 2 }, options)).toEqual({ ...run, deduplicated: true })
      const other = api.trigger('steps', { count: 3 }, { ...options, onConflict: 'reject' })
      expect(await refusalOf(other)).toMatchObject({
        kind: ConflictError,
        code: 'CONFLICT',
        runId: run.id,
        status: 'pending',
      })
    })

    it('triggers many runs, all of them or none', async () => {
      const { durably, api } = await begin()
      const options = { idempotencyKey: 'key', runAt: new Date('2099-01-01T00:00:00Z') }
      const items = [{ payload: { count: 1 } }, { payload: { count: 2 }, options }, { payload: { count: 2 }, options }]
      const runs = await api.batchTrigger('steps', items)
      expect(runs.map(({ payload, deduplicated }) => [payload, deduplicated])).toEqual([
        [{ count: 1 }, false],
        [{ count: 2 }, false],
        [{ count: 2 }, true],
      ])
      expect(runs[1]).toMatchObject({ availableAt: '2099-01-01T00:00:00.000Z', id: runs[2]?.id })
      const bad = api.batchTrigger('steps', [{ payload: { count: 3 } }, { payload: { count: 'four' } }])
      expect(await refusalOf(bad)).toMatchObject({ kind: ValidationError, issues: [{ path: 'count' }] })
      expect(await refusalOf(api.batchTrigger('same', [{ payload: new Date() }]))).toMatchObject({
        kind: SerializationError,
      })
      expect(await api.batchTrigger('same', [{ payload: undefined }])).toHaveLength(1)
      expect(await durably.getRuns()).toHaveLength(3)
    })

    it('finds the children of a run', async () => {
      const { durably, api } = await begin()
      durably.defineJob({ name: 'parent', input: z.unknown() }, async (ctx) => {
        await ctx.trigger('one', { name: 'same' }, 1)
        await ctx.trigger('two', { name: 'same' }, 2)
      })
      const { id } = await api.trigger('parent')
      await durably.runUntilIdle()
      const children = await api.getRuns({ parent: id })
      expect(children.map(({ payload, parentRunId }) => [payload, parentRunId])).toEqual([
        [2, id],
        [1, id],
      ])
      expect(await api.counts({ parent: id })).toMatchObject({ completed: 2, failed: 0 })
    })

    it('says what was counted by the hour', async () => {
      const { durably, api } = await begin()
      expect(await api.getStatistics()).toMatchObject({ countedUntil: null, points: [], total: { completed: 0 } })
      const [at, finishedAt] = ['2026-01-31T09:00:00.000Z', '2026-01-31T09:05:00.000Z']
      const counts = { started: 4, completed: 3, failed: 1, timedOut: 0, cancelled: 0 }
      const row = { hour: at, tenant: null, jobName: null, ...counts, durations: { 9: 3 }, waits: {} }
      const { statistics } = durably.storage
      await statistics?.fold({ from: null, to: { finishedAt, runId: NOBODY }, token: 'one', rows: [row] })
      const filter = { from: new Date('2026-01-31T09:30:00Z'), before: '2026-02-01T00:00:00Z' }
      const counted = await api.getStatistics(filter)
      expect(counted).toEqual(await durably.getStatistics(filter))
      expect(counted).toMatchObject({ countedUntil: finishedAt, points: [{ at, ...counts, queueLatency: null }] })
      expect(counted.total.duration?.p95).toBeCloseTo(4.36, 1)
      expect((await api.getStatistics({ ...filter, interval: 'day', jobName: 'none' })).points).toEqual([])
      expect(await refusalOf(api.getStatistics({ from: 'soon' }))).toMatchObject({ kind: InvalidOptionError })
    })

    it('refuses payloads that schema or JSON refuse, with all that the error says', async () => {
      const { durably, api } = await begin()
      expect(await refusalOf(api.trigger('steps', { count: 'two' }))).toMatchObject({
        kind: ValidationError,
        message: expect.stringMatching(/^The payload of job "steps" does not match its schema: count: /),
        issues: [{ path: 'count' }],
      })
      expect(await refusalOf(api.trigger('same', { at: new Date() }))).toMatchObject({ kind: SerializationError })
      expect(await refusalOf(api.trigger('same', 1, { priority: 0.5 }))).toMatchObject({ kind: InvalidOptionError })
      expect(await durably.getRuns()).toEqual([])
    })

    it('keeps values as they are', async () => {
      const { durably, api } = await begin()
      for (const value of [undefined, null, '', 'ü', 0, [1, [2]], { a: { b: null } }]) {
        const { id } = await api.trigger('same', value)
        await durably.runUntilIdle()
        const run = await api.getRun(id)
        expect([run?.payload, run?.output]).toEqual([value, value])
      }
    })

    it('reads runs, steps, logs and events as they are stored', async () => {
      const { durably, api, ran } = await begin()
      const id = await ran('steps', { count: 5 })
      expect(await api.getRun(id)).toEqual(await durably.getRun(id))
      expect(await api.getSteps(id)).toEqual(await durably.getSteps(id))
      const [logs, events] = [await durably.getLogs(id), await durably.getEvents(id)]
      expect(await api.getLogs(id)).toEqual(logs)
      expect(await api.getLogs(id, { after: logs[0]?.id, limit: 4 })).toEqual(logs.slice(1, 5))
      expect(await api.getEvents(id)).toEqual(events)
      expect(await api.getEvents(id, { after: 2, limit: 4 })).toEqual(events.slice(2, 6))
      expect(await api.explain(id)).toBe(await durably.explain(id))
    })

    it('has null or nothing for what is not there', async () => {
      const { api } = await begin()
      for (const id of [NOBODY, 'a/b', '%', '', '..']) {
        expect(await api.getRun(id)).toBeNull()
        expect([await api.getSteps(id), await api.getLogs(id), await api.getEvents(id)]).toEqual([[], [], []])
        expect(await api.explain(id)).toBe(`There is no run ${id}. It may have been deleted or purged.`)
        expect(await refusalOf(api.cancel(id))).toMatchObject({ kind: NotFoundError, code: 'NOT_FOUND' })
      }
    })

    it('lists runs newest first: all of them, those that match, or page by page', async () => {
      const { durably, api, ran } = await begin()
      const ids: string[] = []
      for (let n = 0; n < 8; n++) ids.unshift(await ran(n % 2 === 0 ? 'same' : 'fail'))
      const idsOf = async (...filter: Parameters<RunApi['getRuns']>) =>
        (await api.getRuns(...filter)).map(({ id }) => id)
      expect(await api.getRuns()).toEqual(await durably.getRuns())
      expect(await idsOf()).toEqual(ids)
      expect(await idsOf({ limit: 5 })).toEqual(ids.slice(0, 5))
      expect(await idsOf({ status: 'failed' })).toEqual(ids.filter((_, index) => index % 2 === 0))
      expect(await idsOf({ jobName: ['same', 'none'], status: ['failed', 'completed'] })).toHaveLength(4)
      expect(await idsOf({ waitsForRetry: false, parked: false, tenant: '' })).toEqual(ids)
      expect(await idsOf({ labels: { team: 'red' } })).toEqual([])
      const [, second] = await api.getRuns({ limit: 2 })
      expect(await idsOf({ cursor: second, limit: 4 })).toEqual(ids.slice(2, 6))
      expect(await idsOf({ cursor: ids[1] })).toEqual(ids.slice(2))
      await api.deleteRun(ids[1] ?? '')
      expect(await idsOf({ cursor: second })).toEqual(ids.slice(2))
      expect(await refusalOf(api.getRuns({ cursor: ids[1] }))).toMatchObject({ kind: InvalidOptionError })
      expect(await api.counts({ jobName: 'fail' })).toEqual(await durably.counts({ jobName: 'fail' }))
    })

    it('finds runs by time, id, code, and what they wait for', async () => {
      const { durably, api, ran } = await begin()
      const [failed, asking] = [await ran('coded'), await ran('ask')]
      const { id: retrying } = await api.trigger('retried')
      await durably.runUntilIdle()
      const idsOf = async (...filter: Parameters<RunApi['getRuns']>) =>
        (await api.getRuns(...filter)).map(({ id }) => id)
      expect(await idsOf({ errorCode: 'E_PAY' })).toEqual([failed])
      expect(await idsOf({ waitsFor: 'signal' })).toEqual([asking])
      expect(await idsOf({ waitsFor: 'retry' })).toEqual([retrying])
      for (const waitsFor of ['unpark', 'time', 'child'] as const) expect(await idsOf({ waitsFor })).toEqual([])
      expect(await idsOf({ idPrefix: asking.slice(0, 25) })).toContain(asking)
      expect(await idsOf({ idPrefix: '7ZZZZZZZ' })).toEqual([])
      const at = (await api.getRun(failed))?.createdAt ?? ''
      expect(await idsOf({ createdFrom: at, createdBefore: new Date('2999-01-01') })).toHaveLength(3)
      expect(await idsOf({ createdBefore: at })).toEqual([])
      expect(await api.counts({ upTo: 1 })).toMatchObject({ pending: 1, failed: 1, completed: 0, waitsForRetry: 1 })
      const bad = [
        { createdFrom: 'today' },
        { waitsFor: 'rain' },
        { errorCode: '' },
        { waitsFor: 'retry', parked: true },
      ]
      for (const filter of bad) {
        expect(await refusalOf(api.getRuns(filter as RunFilter))).toMatchObject({ kind: InvalidOptionError })
      }
    })

    it('cancels, retries and deletes, and says what is in the way', async () => {
      const { durably, api, ran } = await begin()
      const { id } = await api.trigger('steps', { count: 1 })
      const cancelled = await api.cancel(id)
      expect(cancelled).toEqual(await durably.getRun(id))
      expect(await refusalOf(api.cancel(id))).toMatchObject({
        ...{ kind: ConflictError, runId: id, status: 'cancelled' },
        message: `Run ${id} is cancelled; cancel() takes a run that is pending, assigned, orphaned, running.`,
      })
      expect(await api.retry(id)).toMatchObject({ status: 'pending', attempt: 2 })
      for (const command of [api.unpark, api.failParked, api.deleteRun])
        expect(await refusalOf(command(id))).toMatchObject({ kind: ConflictError, status: 'pending' })
      await api.deleteRun(await ran('same'))
      expect(await api.getRuns()).toHaveLength(1)
    })

    it('does runs again after a step, or with another payload', async () => {
      const { durably, api, ran } = await begin()
      const id = await ran('steps', { count: 2 })
      const forked = await api.fork(id, { after: 'step 0', payload: { count: 3 } })
      expect(forked).toEqual(await durably.getRun(forked.id))
      expect(forked).toMatchObject({ forkedFrom: id, payload: { count: 3 }, currentStepIndex: 1 })
      expect((await api.getSteps(forked.id)).map(({ name }) => name)).toEqual(['step 0'])
      await durably.runUntilIdle()
      expect(await api.getRun(forked.id)).toMatchObject({ status: 'completed', output: { count: 3 } })
      expect(await api.fork(id)).toMatchObject({ payload: { count: 2 }, currentStepIndex: 0 })
      expect(await refusalOf(api.fork(id, { after: 'step 9' }))).toMatchObject({ kind: InvalidOptionError })
      expect(await refusalOf(api.fork(id, { payload: { count: 'x' } }))).toMatchObject({ kind: ValidationError })
      expect(await refusalOf(api.fork(NOBODY))).toMatchObject({ kind: NotFoundError })
    })

    it('signals, once for a key', async () => {
      const { durably, api, ran } = await begin()
      const id = await ran('ask')
      expect(await api.signal(id, 'answer', { yes: true }, { dedupeKey: 'one' })).toEqual({ deduplicated: false })
      expect(await api.signal(id, 'answer', 2, { dedupeKey: 'one' })).toEqual({ deduplicated: true })
      await durably.runUntilIdle()
      expect(await api.getRun(id)).toMatchObject({ status: 'completed', output: { yes: true } })
      expect(await refusalOf(api.signal(id, 'answer'))).toMatchObject({ kind: ConflictError, status: 'completed' })
    })

    it('follows a run from any place to its end', async () => {
      const { durably, api, ran } = await begin()
      const id = await ran('steps', { count: 3 })
      const events = await durably.getEvents(id)
      for (const after of [0, 1, events.length - 1, events.length]) {
        expect(await read(api.subscribe(id, { after }))).toEqual(events.slice(after))
      }
      expect(await refusalOf(read(api.subscribe(NOBODY)))).toMatchObject({ kind: NotFoundError })
      expect(() => api.subscribe(id, { after: -1 })).toThrow(InvalidOptionError)
    })

    it('follows a run that goes on, until somebody leaves', async () => {
      const { durably, api, ran } = await begin()
      const id = await ran('ask')
      const abort = new AbortController()
      const [whole, left, aborted] = [
        read(api.subscribe(id)),
        read(api.subscribe(id), 1),
        refusalOf(read(api.subscribe(id, { signal: abort.signal }))),
      ]
      expect(await left).toMatchObject([{ type: 'run:trigger', seq: 1 }])
      abort.abort(new Error('enough'))
      expect(await aborted).toMatchObject({ message: 'enough' })
      await api.signal(id, 'answer', 1)
      await durably.runUntilIdle()
      expect(await whole).toEqual(await durably.getEvents(id))
    })

    it('says that following needs a history', async () => {
      const { api } = await begin(false)
      const { id } = await api.trigger('same', 1)
      await api.cancel(id)
      expect(await refusalOf(read(api.subscribe(id)))).toMatchObject({
        kind: HistoryRequiredError,
        message: `Following run ${id} needs stored events: durably.use(withLogPersistence()).`,
      })
    })

    it('lets a parked run go on, or ends it as failed', async () => {
      const { durably, api } = await begin()
      const [mended, given] = [await parkRun(durably), await parkRun(durably)]
      expect(await api.getRun(mended)).toMatchObject({ status: 'pending', waitingFor: { kind: 'unpark' } })
      expect((await api.getRuns({ waitsFor: 'unpark' })).map(({ id }) => id)).toEqual([given, mended])
      const failed = await api.failParked(given)
      expect(failed).toEqual(await durably.getRun(given))
      expect(failed.status).toBe('failed')
      const unparked = await api.unpark(mended)
      expect(unparked).toEqual(await durably.getRun(mended))
      expect(unparked.waitingFor).toBeNull()
      for (const command of [api.unpark, api.failParked])
        for (const id of [mended, given]) expect(await refusalOf(command(id))).toMatchObject({ kind: ConflictError })
      mend(durably)
      await durably.runUntilIdle()
      expect(await api.getRun(mended)).toMatchObject({ status: 'completed' })
    })

    it('waits for the end of a run, however that is', async () => {
      const { api, ran } = await begin()
      const id = await ran('same', 42)
      expect(await api.wait(id)).toEqual({ id, output: 42 })
      const failed = await ran('fail')
      expect(await refusalOf(api.wait(failed))).toMatchObject({
        kind: RunFailedError,
        run: { id: failed, error: 'it broke' },
      })
      const { id: waiting } = await api.trigger('ask')
      expect(await refusalOf(api.wait(waiting, { timeout: 1 }))).toMatchObject({
        kind: TimeoutError,
        message: `Run ${waiting} did not end within 1 ms. It goes on.`,
      })
      expect(await refusalOf(api.wait(waiting, { signal: AbortSignal.abort(new Error('enough')) }))).toMatchObject({
        message: 'enough',
      })
      for (const options of [{ timeout: -1 }, { timeout: Number.NaN }, { timeOut: 1 }])
        expect(await refusalOf(api.wait(waiting, options))).toMatchObject({ kind: InvalidOptionError })
      const ended = refusalOf(api.wait(waiting))
      await api.cancel(waiting)
      expect(await ended).toMatchObject({ kind: CancelledError, runId: waiting })
      expect(await refusalOf(api.wait(NOBODY))).toMatchObject({ kind: NotFoundError })
    })
  })
})
