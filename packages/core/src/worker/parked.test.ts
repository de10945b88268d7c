import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineJob, type Durably, type JobContext, type Storage } from '../index'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, createMortal, found, recordEvents } from '../testing/test-bench'

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

describe('somebody is told of a parked run', () => {
  const mixed = (ctx: JobContext) => (isChanged ? ctx.sleep('x', 0) : ctx.run('x', () => 42))
  let isChanged = false

  beforeEach(() => {
    isChanged = false
  })

  /** Each waits after its step until the code has changed. */
  async function parkTwo(options: Parameters<Bench['open']>[0], timeout?: number) {
    const durably = bench.open({ concurrency: 5, ...options })
    const job = durably.defineJob({ name: 'job', input: anything, timeout }, async (ctx) => {
      await mixed(ctx)
      await ctx.waitFor('deploy')
    })
    const parent = durably.defineJob({ name: 'parent', input: anything }, async (ctx) => {
      const runs = await Promise.all([0, 1].map((n) => ctx.trigger(`start ${n}`, job, n)))
      return ctx.waitAll('results', runs)
    })
    durably.start()
    const { id } = await parent.trigger({})
    await quiet()
    isChanged = true
    return {
      durably,
      id,
      async park() {
        for (const child of await durably.getRuns({ jobName: 'job' })) await durably.signal(child.id, 'deploy')
        await quiet()
        const [child] = await durably.getRuns({ jobName: 'job' })
        expect(child).toMatchObject({ waitingFor: { kind: 'unpark' } })
        return found(child)
      },
    }
  }

  it('once for each job, with what to do', async () => {
    const { durably, park } = await parkTwo({})
    const errors: unknown[] = []
    durably.onError((error) => errors.push(error))
    await park()
    expect(errors).toMatchObject([{ code: 'PARKED', message: expect.stringContaining('durably.unpark("') }])
  })

  it('by the logger when nobody listens', async () => {
    const lines: string[] = []
    const { park } = await parkTwo({ logger: { error: (...line) => lines.push(line.join(' ')) } })
    await park()
    expect(lines).toMatchObject([expect.stringContaining('is parked: Step "x" was ctx.run')])
  })

  it('who asks after its parent, or after a run that has a timeout', async () => {
    const { durably, id, park } = await parkTwo({}, 60_000)
    expect(await durably.explain(id)).not.toContain('is parked')
    const child = await park()
    expect(await durably.explain(id)).toMatch(/Its child \w+ is parked: durably\.explain\("\w+"\) says why/)
    expect(await durably.explain(child.id)).toContain('if it goes on after 2030-01-01T00:01:00.000Z, it times out')
    await bench.clock.advance(60_000)
    expect(await durably.getRun(child.id)).toMatchObject({ status: 'pending' })
    await durably.unpark(child.id)
    await quiet()
    expect(await durably.getRun(child.id)).toMatchObject({ status: 'timed_out' })
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
