import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineJob, type Durably, type JobContext, type Storage } from './index'
import { settled } from './testing/fake-clock'
import { anything, createBench, createMortal, found, recordEvents, type Bench } from './testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const child = defineJob({ name: 'child', input: anything }, () => 'child')

type Body = (ctx: JobContext) => unknown

/** Runs `before` until it waits, then goes on with `after`, as a deploy does. */
async function redeploy(before: Body, after: Body, tenant = '') {
  const open = (body: Body): Durably => {
    const durably = bench.open()
    durably.register({ child })
    durably.defineJob({ name: 'job', input: anything }, body)
    return durably
  }
  const first = open(async (ctx) => {
    await before(ctx)
    await ctx.waitFor('deploy')
  })
  const job = first.defineJob({ name: 'trigger', input: anything }, () => {})
  const { id } = await first.scoped({ tenant }).trigger({ ...job, name: 'job' }, {})
  first.start()
  await quiet()
  await first.stop()
  expect(await first.getRun(id)).toMatchObject({ waitingFor: { steps: ['deploy'] } })
  const durably = open(after)
  const events = recordEvents(durably)
  await durably.signal(id, 'deploy')
  durably.start()
  await quiet()
  return { durably, id, events, now: async () => found(await durably.getRun(id)), open }
}

async function quiet(): Promise<void> {
  for (let round = 0; round < 3; round++) await bench.clock.advance(0)
}

const KINDS: Readonly<Record<string, Body>> = {
  run: (ctx) => ctx.run('x', () => 42),
  stream: (ctx) => ctx.stream('x', () => 42),
  sleep: (ctx) => ctx.sleep('x', 0),
  signal: (ctx) => ctx.waitFor('x', { timeout: 0 }).catch(() => 'late'),
  trigger: (ctx) => ctx.trigger('x', child, {}),
  child: async (ctx) => ctx.wait('x', await ctx.trigger('start', child, {})),
}

const PAIRS = Object.keys(KINDS).flatMap((before) => Object.keys(KINDS).map((after) => ({ before, after })))
const isBody = (kind: string) => kind === 'run' || kind === 'stream'

describe('a name that is recorded', () => {
  it.each(PAIRS.filter(({ before, after }) => before !== after && !(isBody(before) && isBody(after))))(
    'for $before is not taken for $after: the run is parked',
    async ({ before, after }) => {
      const later: unknown[] = []
      const changed = found(KINDS[after])
      const { now, events, durably, id } = await redeploy(found(KINDS[before]), async (ctx) => {
        later.push(await Promise.resolve(changed(ctx)).catch((error: unknown) => error))
      })
      expect(later).toEqual([])
      const parked = await now()
      expect(parked).toMatchObject({ status: 'pending', availableAt: null, ownerId: null, attempt: 1, crashCount: 0 })
      expect(parked.waitingFor).toMatchObject({ kind: 'unpark', reason: expect.stringContaining('Step "x" was ctx.') })
      expect(events.filter(({ type }) => type === 'run:park')).toMatchObject([{ runId: id, jobName: 'job' }])
      const words = await durably.explain(id)
      for (const command of ['unpark', 'failParked']) expect(words).toContain(`durably.${command}("${id}")`)
    },
  )

  it.each(PAIRS.filter(({ before, after }) => before === after || (isBody(before) && isBody(after))))(
    'for $before is for $after',
    async ({ before, after }) => {
      const { now } = await redeploy(found(KINDS[before]), found(KINDS[after]))
      expect(await now()).toMatchObject({ status: 'completed' })
    },
  )

  it('does not hand what a stream has left to a body that is none', async () => {
    const mortal = createMortal(bench.storage)
    const open = (body: Body, storage: Storage) => {
      const durably = bench.open({ storage, workerId: storage === bench.storage ? 'second' : 'first' })
      durably.use({ name: 'history', records: { events: true } })
      const job = durably.defineJob({ name: 'job', input: anything }, body)
      durably.start()
      return { durably, job }
    }
    const first = open(
      (ctx) => ctx.stream('x', (emit) => emit('part').then(() => new Promise(() => {}))),
      mortal.storage,
    )
    const { id } = await first.job.trigger({})
    await bench.clock.advance(100)
    expect(await bench.storage.getSteps(id)).toMatchObject([{ status: 'started', checkpoint: expect.any(String) }])
    mortal.kill()
    const seen: unknown[] = []
    const { durably } = open((ctx) => ctx.run('x', ({ checkpoint }) => void seen.push(checkpoint)), bench.storage)
    await durably.recover({ workerId: 'first' })
    await quiet()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
    expect(seen).toEqual([undefined])
  })

  it('for a body that was never recorded well in this attempt is free in the next', async () => {
    const durably = bench.open()
    let changed = false
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      changed ? ctx.sleep('x', 0) : ctx.run('x', () => Promise.reject(new Error('no'))),
    )
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    changed = true
    await durably.retry(id)
    await quiet()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })
})

describe('a parked run', () => {
  const mixed = (tenant?: string) => redeploy(found(KINDS['run']), found(KINDS['signal']), tenant)

  it('goes on where it was once its code is mended', async () => {
    const { durably, id, open } = await mixed()
    await durably.stop()
    const mended = open((ctx) => ctx.run('x', () => 'ran again'))
    const events = recordEvents(mended)
    expect(await mended.unpark(id)).toMatchObject({ id, status: 'pending', waitingFor: null })
    mended.start()
    await quiet()
    expect(await mended.getRun(id)).toMatchObject({ status: 'completed', output: 42 })
    expect(events[0]).toMatchObject({ type: 'run:unpark', runId: id, jobName: 'job' })
  })

  it('is parked again while its code is not', async () => {
    const { durably, id, events, now } = await mixed()
    await durably.unpark(id)
    await quiet()
    expect(await now()).toMatchObject({ status: 'pending', waitingFor: { kind: 'unpark' } })
    expect(events.filter(({ type }) => type === 'run:park')).toHaveLength(2)
  })

  it('can be failed by hand, and those who wait for it hear of that', async () => {
    const { durably, id, events } = await mixed()
    const [job] = Object.values(durably.register({ job: child }))
    expect(await durably.failParked(id)).toMatchObject({ status: 'failed', errorDetail: { code: 'PARKED' } })
    expect(events.at(-1)).toMatchObject({ type: 'run:fail', runId: id, failedStepName: null })
    await expect(found(job).wait(id)).rejects.toMatchObject({ code: expect.any(String) })
    await expect(durably.unpark(id)).rejects.toMatchObject({
      code: 'CONFLICT',
      message: `Run ${id} is failed; unpark() takes a run that is parked.`,
    })
  })

  it('can be cancelled', async () => {
    const { durably, id } = await mixed()
    expect(await durably.cancel(id)).toMatchObject({ status: 'cancelled' })
  })

  it('is out of reach for other tenants', async () => {
    const { durably, id } = await mixed('acme')
    for (const command of ['unpark', 'failParked'] as const) {
      await expect(durably.scoped({ tenant: 'other' })[command](id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    expect(await durably.scoped({ tenant: 'acme' }).failParked(id)).toMatchObject({ status: 'failed' })
  })

  it('is parked when its bodies have let go, and keeps what they came to', async () => {
    const { now, durably, id } = await redeploy(found(KINDS['run']), (ctx) =>
      Promise.all([
        ctx.run('beside', async ({ signal }) => {
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          return 'kept'
        }),
        ctx.waitFor('x'),
      ]),
    )
    expect(await now()).toMatchObject({ waitingFor: { kind: 'unpark' } })
    expect(await durably.getSteps(id)).toContainEqual(expect.objectContaining({ name: 'beside', output: 'kept' }))
  })
})

describe('a run that is not parked', () => {
  it('is refused', async () => {
    const { durably, run } = await bench.perform((ctx) => ctx.sleep('long', 60_000))
    for (const command of ['unpark', 'failParked'] as const) {
      await expect(durably[command](run.id)).rejects.toMatchObject({ code: 'CONFLICT', runId: run.id })
      await expect(durably[command]('nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })
})
