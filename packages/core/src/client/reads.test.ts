import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Durably, ENDED_STATUSES, type Run, RUN_STATUSES, type Storage } from '../index'
import { anything, type Bench, createBench, createGate, createMortal, found } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

function office() {
  const durably = bench.open()
  const letter = durably.defineJob(
    { name: 'letter', input: z.object({ fails: z.boolean().optional() }) },
    (_ctx, { fails }) => {
      if (fails === true) throw new Error('no stamp')
      return 'sent'
    },
  )
  const call = durably.defineJob({ name: 'call', input: anything }, () => 'said')
  return { durably, letter, call }
}

describe('reading what is not there', () => {
  it('gives null or nothing', async () => {
    const { durably, letter } = office()
    expect(await durably.getRun('01ARZ3NDEKTSV4RRFFQ69G5FAV')).toBeNull()
    expect(await letter.getRun('nothing')).toBeNull()
    expect(await durably.getRuns()).toEqual([])
    expect(await durably.getSteps('nothing')).toEqual([])
    expect(await durably.getLogs('nothing')).toEqual([])
    expect(await durably.getEvents('nothing')).toEqual([])
    expect(await durably.explain('nothing')).toMatch(/no run nothing/)
  })

  it('needs a storage that can', async () => {
    const { events: _events, logs: _logs, ...bare } = bench.storage
    const storage: Storage = bare
    const durably = bench.open({ storage })
    await expect(durably.getLogs('x')).rejects.toMatchObject({ code: 'CAPABILITY_MISSING', capability: 'logs' })
    await expect(durably.getEvents('x')).rejects.toMatchObject({ code: 'CAPABILITY_MISSING', capability: 'events' })
  })
})

describe('getRun', () => {
  it('of a handle does not see runs of other jobs', async () => {
    const { durably, letter, call } = office()
    const run = await letter.trigger({})
    expect(await letter.getRun(run.id)).toMatchObject({ id: run.id })
    expect(await call.getRun(run.id)).toBeNull()
    expect(await durably.getRun(run.id)).toMatchObject({ id: run.id, jobName: 'letter' })
  })

  it('shows a completed run with its output, a failed one with its error', async () => {
    const { durably, letter } = office()
    durably.start()
    const good = await letter.trigger({})
    const bad = await letter.trigger({ fails: true })
    await settled()
    expect(await letter.getRun(good.id)).toMatchObject({
      status: 'completed',
      output: 'sent',
      error: null,
      errorDetail: null,
      ownerId: null,
      leaseUntil: null,
      startedAt: '2030-01-01T00:00:00.000Z',
      finishedAt: '2030-01-01T00:00:00.000Z',
    })
    expect(await letter.getRun(bad.id)).toMatchObject({
      status: 'failed',
      output: null,
      error: 'no stamp',
      errorDetail: { name: 'Error', stack: expect.stringContaining('no stamp') },
    })
  })

  it('shows who holds a running run and until when', async () => {
    const gate = createGate()
    const { run } = await bench.perform(() => gate.opened, { workerId: 'me', staleThreshold: 20_000 })
    expect(run).toMatchObject({ status: 'running', ownerId: 'me', leaseUntil: '2030-01-01T00:00:20.000Z' })
    gate.open()
  })

  it('returns a copy', async () => {
    const { durably, call } = office()
    const { id } = await call.trigger({ list: [1] })
    const first = found(await durably.getRun(id))
    ;(first.payload as { list: number[] }).list.push(2)
    expect(await durably.getRun(id)).toMatchObject({ payload: { list: [1] } })
  })
})

describe('getRuns', () => {
  it('gives everything, newest first', async () => {
    const { durably, letter, call } = office()
    const first = await letter.trigger({})
    await bench.clock.advance(10)
    const second = await call.trigger({})
    const third = await letter.trigger({})
    expect((await durably.getRuns()).map(({ id }) => id)).toEqual([third.id, second.id, first.id])
    expect((await durably.getRuns({})).map(({ id }) => id)).toHaveLength(3)
  })

  it('filters by job, and a handle by its own always', async () => {
    const { durably, letter, call } = office()
    await letter.trigger({})
    const { id } = await call.trigger({})
    expect((await durably.getRuns({ jobName: 'call' })).map((run) => run.id)).toEqual([id])
    expect((await call.getRuns({ jobName: 'letter' })).map((run) => run.id)).toEqual([id])
    expect(await durably.getRuns({ jobName: 'none' })).toEqual([])
  })

  it('filters by several jobs, and by none', async () => {
    const { durably, letter, call } = office()
    const visit = durably.defineJob({ name: 'visit', input: anything }, () => 'came')
    const ids = [await letter.trigger({}), await visit.trigger({}), await call.trigger({})].map(({ id }) => id)
    const found = async (jobName: string[]) => (await durably.getRuns({ jobName })).map(({ id }) => id)
    expect(await found(['call', 'letter', 'none'])).toEqual([ids[2], ids[0]])
    expect(await found([])).toEqual([])
  })

  it('tells those that wait for a retry from those that do not', async () => {
    const durably = bench.open()
    const retry = { maxAttempts: 2, delay: 60_000 }
    const job = durably.defineJob({ name: 'job', input: anything, retry }, (_ctx, fails) => {
      if (fails === true) throw new Error('not yet')
    })
    const failed = await job.trigger(true)
    const later = await job.trigger(false, { delay: 60_000 })
    const ids = async (waitsForRetry?: boolean) => (await job.getRuns({ waitsForRetry })).map(({ id }) => id)
    expect(await ids(true)).toEqual([])
    await durably.runUntilIdle()
    expect(await ids(true)).toEqual([failed.id])
    expect(await ids(false)).toEqual([later.id])
    expect(await ids()).toEqual([later.id, failed.id])
    expect(await durably.counts()).toMatchObject({ pending: 2, waitsForRetry: 1 })
    await bench.clock.advance(60_000)
    expect(await ids(true)).toEqual([failed.id])
    await durably.runUntilIdle()
    expect(await ids(true)).toEqual([])
    expect(await durably.counts()).toMatchObject({ completed: 1, failed: 1, pending: 0, waitsForRetry: 0 })
  })

  it('finds those that are parked', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    const [old, fresh] = [await job.trigger({}), await job.trigger({})]
    await bench.storage.command({ kind: 'park', runId: old.id, reason: 'Its code has changed.', events: [] })
    const ids = async (parked: boolean) => (await durably.getRuns({ parked })).map(({ id }) => id)
    expect([await ids(true), await ids(false)]).toEqual([[old.id], [fresh.id]])
    expect(await durably.counts()).toMatchObject({ pending: 2, parked: 1 })
    await durably.failParked(old.id)
    expect(await ids(true)).toEqual([])
    expect(await durably.counts()).toMatchObject({ pending: 1, parked: 0, failed: 1 })
  })

  it.each(['true', 1, null])('refuses %j for waitsForRetry and parked', async (wrong) => {
    const { durably } = office()
    for (const name of ['waitsForRetry', 'parked']) {
      const answer = durably.getRuns({ [name]: wrong as never })
      await expect(answer).rejects.toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining(name) })
    }
  })

  it('filters by one status or several', async () => {
    const { durably, letter } = office()
    const waiting = await letter.trigger({}, { delay: 60_000 })
    const good = await letter.trigger({})
    const bad = await letter.trigger({ fails: true })
    durably.start()
    await settled()
    const ids = async (status: 'failed' | ('failed' | 'pending' | 'completed')[]) =>
      (await letter.getRuns({ status })).map(({ id }) => id)
    expect(await ids('failed')).toEqual([bad.id])
    expect(await ids(['pending', 'failed'])).toEqual([bad.id, waiting.id])
    expect(await ids(['completed'])).toEqual([good.id])
    expect(await ids([])).toEqual([])
  })

  it('filters by labels, all of them', async () => {
    const { durably, call } = office()
    const both = await call.trigger({}, { labels: { team: 'a', env: 'test' } })
    const one = await call.trigger({}, { labels: { team: 'a' } })
    expect((await durably.getRuns({ labels: { team: 'a' } })).map(({ id }) => id)).toEqual([one.id, both.id])
    expect((await durably.getRuns({ labels: { team: 'a', env: 'test' } })).map(({ id }) => id)).toEqual([both.id])
    expect(await durably.getRuns({ labels: { team: 'b' } })).toEqual([])
    expect(both.labels).toEqual({ team: 'a', env: 'test' })
  })

  it('filters by tenant', async () => {
    const { durably, call } = office()
    const { id } = await call.trigger({}, { tenant: 't' })
    await call.trigger({})
    expect((await durably.getRuns({ tenant: 't' })).map((run) => run.id)).toEqual([id])
  })

  it('gives pages that add up to everything', async () => {
    const { durably, call } = office()
    const runs = await call.batchTrigger(Array.from({ length: 7 }, (_, payload) => ({ payload })))
    const seen: string[] = []
    let cursor: string | undefined
    for (;;) {
      const page = await durably.getRuns({ limit: 3, cursor })
      seen.push(...page.map(({ id }) => id))
      cursor = page.at(-1)?.id
      if (page.length < 3) break
    }
    expect(seen).toEqual(runs.map(({ id }) => id).reverse())
  })

  it('goes on after a run that was deleted, if it is given the run', async () => {
    const { durably, call } = office()
    const runs = await call.batchTrigger(Array.from({ length: 5 }, (_, payload) => ({ payload })))
    for (const { id } of runs) await durably.cancel(id)
    const seen: string[] = []
    for (let cursor: Run | undefined; ; ) {
      const page = await durably.getRuns({ limit: 2, cursor })
      seen.push(...page.map(({ id }) => id))
      cursor = page.at(-1)
      if (cursor === undefined) break
      await durably.deleteRun(cursor.id)
    }
    expect(seen).toEqual(runs.map(({ id }) => id).reverse())
  })

  it('refuses the id of a run that was deleted: nobody knows where that was', async () => {
    const { durably, call } = office()
    const { id } = await call.trigger({})
    await durably.cancel(id)
    await durably.deleteRun(id)
    await expect(durably.getRuns({ cursor: id })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each([
    null,
    7,
    {},
    { id: 'x' },
    { id: 1, createdAt: '2030-01-01T00:00:00.000Z' },
    { id: 'x', createdAt: 'yesterday' },
    { id: 'x', createdAt: '2030-01-01' },
    { id: 'x', createdAt: new Date() },
  ])('refuses %j as a cursor', async (cursor) => {
    const runs = office().durably.getRuns({ cursor: cursor as never })
    await expect(runs).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('refuses a limit of %s', async (limit) => {
    await expect(office().durably.getRuns({ limit })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each([
    { tenant: 'a\0b' },
    { tenant: 5 },
    { jobName: ['a', 'a\ud800b'] },
    { labels: null },
    { labels: { a: 'b\0' } },
    { idPrefix: 'abcdef\0' },
    { errorCode: 'E\0' },
  ])('refuses %j as a condition, on every storage alike', async (filter) => {
    const { durably } = office()
    await expect(durably.getRuns(filter as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(durably.counts(filter as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('finds no run under an id that no database keeps, and does not ask for it', async () => {
    const { durably } = office()
    durably.storage.getRun = () => Promise.reject(new Error('asked'))
    durably.storage.command = () => Promise.reject(new Error('asked'))
    for (const id of ['a\0b', 'a\ud800b']) {
      expect([await durably.getRun(id), await durably.getSteps(id)]).toEqual([null, []])
      await expect(durably.cancel(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    expect(() => durably.scoped({ tenant: 'a\0b' })).toThrow('NUL')
    await expect(durably.getAudit({ actor: 'a\0b' })).rejects.toThrow('NUL')
  })

  it('asks the storage for each status once', async () => {
    const { durably } = office()
    const asked: unknown[] = []
    const { getRuns, counts } = durably.storage
    durably.storage.getRuns = (query) => {
      asked.push(query.statuses)
      return getRuns(query)
    }
    durably.storage.counts = (query) => {
      asked.push(query.statuses)
      return counts(query)
    }
    const status = ['failed', 'pending', 'failed'] as const
    await durably.getRuns({ status })
    await durably.counts({ status })
    expect(asked).toEqual([
      ['failed', 'pending'],
      ['failed', 'pending'],
    ])
  })

  it('refuses a status that does not exist', async () => {
    const { durably } = office()
    await expect(durably.getRuns({ status: 'done' as 'failed' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('getSteps', () => {
  it('shows each step as it is stored', async () => {
    const gate = createGate()
    const { durably, run } = await bench.perform(async (ctx) => {
      await ctx.run('first', async () => {
        await gate.opened
        return { n: 1 }
      })
      await ctx.run('second', () => {})
      await ctx.run('third', () => {
        throw new TypeError('third time unlucky')
      })
    })
    await bench.clock.advance(20)
    gate.open()
    await settled()
    expect(await durably.getSteps(run.id)).toEqual([
      {
        name: 'first',
        index: 0,
        kind: 'run',
        status: 'completed',
        attempt: 1,
        output: { n: 1 },
        error: null,
        errorDetail: null,
        checkpoint: undefined,
        startedAt: '2030-01-01T00:00:00.000Z',
        completedAt: '2030-01-01T00:00:00.020Z',
        dueAt: null,
      },
      expect.objectContaining({ name: 'second', index: 1, status: 'completed', output: undefined }),
      expect.objectContaining({
        name: 'third',
        index: 2,
        status: 'failed',
        error: 'third time unlucky',
        errorDetail: expect.objectContaining({ name: 'TypeError', stepName: 'third' }),
      }),
    ])
  })
})

describe('counts', () => {
  it('counts by status, of everything, a job or a tenant', async () => {
    const { durably, letter, call } = office()
    await letter.trigger({})
    await letter.trigger({ fails: true })
    await call.trigger({}, { delay: 1000, tenant: 't' })
    durably.start()
    await settled()
    const none = { ...Object.fromEntries(RUN_STATUSES.map((status) => [status, 0])), waitsForRetry: 0, parked: 0 }
    expect(await durably.counts()).toEqual({ ...none, pending: 1, completed: 1, failed: 1 })
    expect(await durably.counts({ jobName: 'call' })).toEqual({ ...none, pending: 1 })
    expect(await durably.counts({ jobName: ['letter', 'none'] })).toEqual({ ...none, completed: 1, failed: 1 })
    expect(await durably.counts({ jobName: [] })).toEqual(none)
    expect(await durably.counts({ tenant: 't' })).toEqual({ ...none, pending: 1 })
    expect(await durably.counts({ tenant: 'none' })).toEqual(none)
  })
})

/** A run that only waits is left after a turn of the loop, which is a timer here. */
async function drain(durably: Durably) {
  const draining = durably.runUntilIdle()
  await bench.clock.advance(10)
  await draining
}

describe('explain', () => {
  it('names the time of a delayed run', async () => {
    const { durably, call } = office()
    const { id } = await call.trigger({}, { delay: 1000 })
    expect(await durably.explain(id)).toContain('starts at 2030-01-01T00:00:01.000Z')
  })

  it('names who has the concurrency key', async () => {
    const gate = createGate()
    const durably = bench.open({ concurrency: 2 })
    const job = durably.defineJob({ name: 'job', input: anything }, () => gate.opened)
    durably.start()
    const first = await job.trigger({}, { concurrencyKey: 'k' })
    const second = await job.trigger({}, { concurrencyKey: 'k' })
    await settled()
    expect(await durably.explain(second.id)).toMatch(new RegExp(`concurrency key "k".*${first.id}`))
    expect(await durably.explain(first.id)).toContain('is running on worker')
    gate.open()
  })

  it('names no time that is over, and none at which something else happens', async () => {
    const durably = bench.open({ concurrency: 4 })
    const retry = { maxAttempts: 3, delay: 60_000 }
    const waiting = durably.defineJob({ name: 'waiting', input: anything }, (ctx) =>
      ctx.waitFor('go', { timeout: 50_000 }),
    )
    const failing = durably.defineJob({ name: 'failing', input: anything, retry }, () => {
      throw new Error('oh no')
    })
    const hasty = durably.defineJob({ name: 'hasty', input: anything, retry, timeout: 30_000 }, (ctx, kind) => {
      if (kind === 'wait') return ctx.waitFor('go')
      throw new Error('oh no')
    })
    const ids = {
      waiting: (await waiting.trigger({})).id,
      failing: (await failing.trigger({})).id,
      hastyWait: (await hasty.trigger('wait')).id,
      hastyRetry: (await hasty.trigger('fail')).id,
      later: (await waiting.trigger({}, { delay: 40_000 })).id,
    }
    const explained = async () => {
      const all = Object.entries(ids).map(async ([name, id]) => [name, await durably.explain(id)] as const)
      return Object.fromEntries(await Promise.all(all))
    }
    await drain(durably)
    expect(await explained()).toEqual({
      waiting: expect.stringContaining(' waits for "go"; it goes on at 2030-01-01T00:00:50.000Z at the latest.'),
      failing: expect.stringContaining(' failed (oh no), and starts attempt 2 at 2030-01-01T00:01:00.000Z.'),
      hastyWait: expect.stringContaining(' waits for "go"; it times out at 2030-01-01T00:00:30.000Z.'),
      hastyRetry: expect.stringContaining(' failed (oh no), and it times out at 2030-01-01T00:00:30.000Z.'),
      later: expect.stringContaining(' starts at 2030-01-01T00:00:40.000Z.'),
    })
    await bench.clock.advance(60_000)
    const due = 'is due; no worker runs in this process.'
    expect(await explained()).toEqual({
      waiting: expect.stringContaining(` need not wait for "go" any more, and ${due}`),
      failing: expect.stringContaining(`may start attempt 2, and ${due}`),
      hastyWait: expect.stringContaining(` need not wait for "go" any more, and ${due}`),
      hastyRetry: expect.stringContaining(`may start attempt 2, and ${due}`),
      later: expect.stringContaining(` ${due}`),
    })
  })

  it('says of a wait without a time, or whose signal has come, that it is one', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.waitFor('go'))
    const { id } = await job.trigger({})
    await drain(durably)
    expect(await durably.explain(id)).toMatch(/ waits for "go"\.$/)
    await durably.signal(id, 'go')
    expect(await durably.explain(id)).toMatch(/ need not wait for "go" any more, and is due/)
  })

  it('says that the lease of a lost worker ran out', async () => {
    const mortal = createMortal(bench.storage)
    const { run } = await bench.perform(() => new Promise(() => {}), { storage: mortal.storage })
    mortal.kill()
    const durably = bench.open()
    expect(await durably.explain(run.id)).toContain('without news it is taken back after 2030-01-01T00:00:30.000Z.')
    await bench.clock.advance(30_001)
    expect(await durably.explain(run.id)).toContain(
      'its lease ran out at 2030-01-01T00:00:30.000Z, and the next worker',
    )
  })

  it('does not name the run itself as the one that has its key', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.waitFor('go'))
    const { id } = await job.trigger({}, { concurrencyKey: 'k', holdKeyWhileWaiting: true })
    await drain(durably)
    await durably.signal(id, 'go')
    expect(await durably.explain(id)).toContain('is due; no worker runs in this process')
  })

  it('says whether a worker runs in this process', async () => {
    const gate = createGate()
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => gate.opened)
    await job.trigger({})
    const { id } = await job.trigger({})
    const explained = async () => found((await durably.explain(id)).split('is due').at(1))
    const none =
      '; no worker runs in this process. durably.start() starts it, unless one of another process is to run this.'
    expect(await explained()).toBe(none)
    durably.start()
    await settled()
    expect(await explained()).toBe(' and waits for a free worker.')
    const stopped = durably.stop()
    await settled()
    expect(await explained()).toBe('; the worker of this process is stopping and takes no more.')
    gate.open()
    await stopped
    expect(await explained()).toBe(none)
  })

  it('says that nobody here knows the job', async () => {
    const { call } = office()
    const { id } = await call.trigger({})
    expect(await bench.open().explain(id)).toMatch(/knows the job/)
  })

  it('has words for every end', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything, timeout: 100 }, async (ctx, kind) => {
      if (kind === 'fail') throw new Error('oh no')
      if (kind === 'wait')
        await new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
    })
    durably.start()
    const expected = { complete: /completed at/, fail: /failed at.*oh no.*retry/, wait: /timed out at/ }
    for (const [kind, words] of Object.entries(expected)) {
      const { id } = await job.trigger(kind)
      await bench.clock.advance(200)
      expect(await durably.explain(id)).toMatch(words)
    }
    const { id } = await job.trigger('x', { delay: 1000 })
    await durably.cancel(id)
    expect(await durably.explain(id)).toMatch(/was cancelled at/)
    expect((await durably.getRuns()).every(({ status }) => ENDED_STATUSES.includes(status as 'failed'))).toBe(true)
  })
})

it('a page after what is no place in the list is refused, whether the run is there or not', async () => {
  const durably = bench.open()
  for (const after of [Number.NaN, -1, 1.5, '5', null, {}] as never[]) {
    await expect(durably.getEvents('nobody', { after })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  }
  for (const after of [Number.NaN, 5, null, {}] as never[]) {
    await expect(durably.getLogs('nobody', { after })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  }
  expect(await durably.getEvents('nobody', { after: 0 })).toEqual([])
})
