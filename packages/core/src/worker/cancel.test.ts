import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ExecutionAbortedError, type JobContext, type Storage } from '../index'
import { anything, type Bench, createBench, createGate, createMortal, recordEvents } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}

const forever = () => new Promise<never>(() => {})

const CANCELS = ['run:cancel', 'run:complete', 'run:fail', 'run:timeout'] as const

describe('cancelling a run that waits', () => {
  it.each([{}, { delay: 1000 }])('ends it at once, and its body never starts (%o)', async (options) => {
    const durably = bench.open()
    let ran = false
    const job = durably.defineJob({ name: 'job', input: anything }, () => {
      ran = true
    })
    const events = recordEvents(durably, CANCELS)
    const { id } = await job.trigger({}, options)
    const run = await durably.cancel(id)
    expect(run).toMatchObject({ id, status: 'cancelled', output: null, error: null, finishedAt: expect.any(String) })
    expect(await durably.getRun(id)).toEqual(run)
    durably.start()
    await bench.clock.advance(5000)
    expect(ran).toBe(false)
    expect(events).toMatchObject([{ type: 'run:cancel', runId: id, jobName: 'job', requested: false }])
  })
})

describe('cancelling a run in progress here', () => {
  it('aborts its signal and ends it as soon as the body lets go', async () => {
    const reasons: unknown[] = []
    const { durably, run, events, now } = await bench.perform((ctx) =>
      ctx.run('slow', async ({ signal }) => {
        await aborted(signal).catch((reason: unknown) => reasons.push(reason))
        throw signal.reason
      }),
    )
    const answer = await durably.cancel(run.id)
    expect(answer).toMatchObject({ status: 'running', cancelRequestedAt: '2030-01-01T00:00:00.000Z' })
    await settled()
    expect(reasons).toMatchObject([{ code: 'CANCELLED', reason: 'cancelled' }])
    expect(reasons[0]).toBeInstanceOf(ExecutionAbortedError)
    expect(await now()).toMatchObject({ status: 'cancelled', output: null, error: null, ownerId: null })
    expect(events.filter(({ type }) => CANCELS.includes(type as 'run:cancel'))).toMatchObject([
      { type: 'run:cancel', requested: true },
      { type: 'run:cancel', requested: false },
    ])
  })

  it('starts no further body and rejects ctx calls', async () => {
    const gate = createGate()
    const errors: unknown[] = []
    const ran: string[] = []
    const { durably, run, now } = await bench.perform(async (ctx) => {
      await gate.opened
      await ctx.run('late', () => ran.push('late')).catch((error: unknown) => errors.push(error))
      return 'returned all the same'
    })
    await durably.cancel(run.id)
    gate.open()
    await settled()
    expect(ran).toEqual([])
    expect(errors).toMatchObject([{ code: 'CANCELLED' }])
    expect(await now()).toMatchObject({ status: 'cancelled', output: null })
  })

  it('rejects ctx calls also for steps that are recorded, and tells of no start', async () => {
    const gate = createGate()
    const errors: unknown[] = []
    let hold = false
    const { durably, run, events } = await bench.perform(async (ctx) => {
      if (hold) await gate.opened
      for (const name of ['recorded', 'new']) await ctx.run(name, () => 1).catch((error: unknown) => errors.push(error))
      if (!hold) throw new Error('once more')
    })
    hold = true
    await durably.retry(run.id)
    await settled()
    await durably.cancel(run.id)
    const before = events.length
    gate.open()
    await settled()
    // One rejection in a turn of the event loop.
    await bench.clock.advance(1)
    expect(errors).toMatchObject([{ code: 'CANCELLED' }, { code: 'CANCELLED' }])
    expect(events.slice(before).map(({ type }) => type)).toEqual(['run:cancel'])
  })

  it('records what a body comes to that finishes all the same', async () => {
    const gate = createGate()
    const { durably, run, now } = await bench.perform((ctx) =>
      ctx.run('stubborn', async () => {
        await gate.opened
        return 'done'
      }),
    )
    await durably.cancel(run.id)
    await settled()
    expect(await now()).toMatchObject({ status: 'running' })
    gate.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'cancelled' })
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'stubborn', status: 'completed', output: 'done' }])
  })

  it('has aborted its signal for who asks for it only then', async () => {
    const gate = createGate()
    const seen: unknown[] = []
    const { durably, run } = await bench.perform(async (ctx) => {
      await gate.opened
      seen.push(ctx.signal.aborted, ctx.signal.reason)
    })
    await durably.cancel(run.id)
    gate.open()
    await settled()
    expect(seen).toMatchObject([true, { code: 'CANCELLED', reason: 'cancelled' }])
  })

  it('gives up a body that ignores its signal after 5 s, and goes on with the next run', async () => {
    const { durably, job, run, now } = await bench.perform((ctx) => ctx.run('deaf', forever))
    await durably.cancel(run.id)
    const next = await job.trigger({}, { delay: 0 })
    await bench.clock.advance(4999)
    expect(await now()).toMatchObject({ status: 'running' })
    expect(await durably.getRun(next.id)).toMatchObject({ status: 'pending' })
    await bench.clock.advance(1)
    expect(await now()).toMatchObject({ status: 'cancelled' })
    expect(await durably.getRun(next.id)).toMatchObject({ status: 'running' })
  })

  it('ends it cancelled when the job throws something else meanwhile', async () => {
    const { durably, run, now, events } = await bench.perform(async (ctx) => {
      await aborted(ctx.signal).catch(() => {})
      throw new Error('cleaning up failed')
    })
    await durably.cancel(run.id)
    await settled()
    expect(await now()).toMatchObject({ status: 'cancelled', error: null })
    expect(events.some(({ type }) => type === 'run:fail')).toBe(false)
  })

  it('gives a body beside the one that lets go its 5 s, and records it', async () => {
    const gate = createGate()
    const { durably, run, now } = await bench.perform((ctx) =>
      Promise.all([
        ctx.run('polite', ({ signal }) => aborted(signal)),
        ctx.run('paying', async () => {
          await gate.opened
          return 'paid'
        }),
      ]),
    )
    await durably.cancel(run.id)
    await bench.clock.advance(1000)
    gate.open()
    await bench.clock.advance(5000)
    expect(await now()).toMatchObject({ status: 'cancelled' })
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'paying', status: 'completed', output: 'paid' }])
  })

  it('may be asked for twice', async () => {
    const { durably, run, now } = await bench.perform((ctx) => aborted(ctx.signal))
    await Promise.all([durably.cancel(run.id), durably.cancel(run.id)])
    await settled()
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })
})

describe('cancelling a run in progress elsewhere', () => {
  it('is seen at the next commit', async () => {
    const gate = createGate()
    const ran: string[] = []
    const { run, now, durably } = await bench.perform(async (ctx) => {
      await ctx.run('first', () => gate.opened)
      await ctx.run('second', () => ran.push('second'))
    })
    await bench.open().cancel(run.id)
    await settled()
    expect(durably.health().active).toEqual([run.id])
    gate.open()
    await settled()
    expect(ran).toEqual([])
    expect(await now()).toMatchObject({ status: 'cancelled' })
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'first', status: 'completed' }])
  })

  it('is heard at once where the storage tells of it', async () => {
    const { run, now } = await bench.perform((ctx) => ctx.run('slow', ({ signal }) => aborted(signal)))
    await bench.open().cancel(run.id)
    await settled()
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it('is seen at the next renewal otherwise', async () => {
    const { watch: _, ...storage } = bench.storage
    const { run, now } = await bench.perform((ctx) => ctx.run('slow', ({ signal }) => aborted(signal)), {
      heartbeatInterval: 2000,
      storage,
    })
    await bench.open().cancel(run.id)
    await bench.clock.advance(1999)
    expect(await now()).toMatchObject({ status: 'running' })
    await bench.clock.advance(1)
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it('ends it when its worker is dead, without running it again', async () => {
    const mortal = createMortal(bench.storage)
    const { run, now } = await bench.perform(forever, { storage: mortal.storage, workerId: 'dead' })
    mortal.kill()
    const other = bench.open()
    let again = false
    other.defineJob({ name: 'job', input: anything }, () => {
      again = true
    })
    const events = recordEvents(other, CANCELS)
    other.start()
    await settled()
    await other.cancel(run.id)
    await bench.clock.advance(32_000)
    expect(await now()).toMatchObject({ status: 'cancelled', finishedAt: expect.any(String) })
    expect(again).toBe(false)
    expect(events).toMatchObject([{ requested: true }, { requested: false }])
  })
})

describe('cancel and complete at the same time', () => {
  const cancelOf = (runId: string) => ({ kind: 'cancel', runId, events: { cancelled: [], requested: [] } }) as const

  it('ends it cancelled when the cancel was first', async () => {
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        for (const { lease, outcome } of commits) {
          if (outcome?.kind === 'complete') await bench.storage.command(cancelOf(lease.runId))
        }
        return bench.storage.commit(commits)
      },
    }
    const { run, events } = await bench.perform(() => 'result', { storage })
    expect(run).toMatchObject({ status: 'cancelled', output: null })
    expect(events.map(({ type }) => type).filter((type) => type !== 'run:trigger')).toEqual(['run:start', 'run:cancel'])
  })

  it('refuses the cancel when the completion was first', async () => {
    const { durably, run, now } = await bench.perform(() => 'result')
    await expect(durably.cancel(run.id)).rejects.toMatchObject({ code: 'CONFLICT', runId: run.id, status: 'completed' })
    expect(await now()).toMatchObject({ status: 'completed', output: 'result' })
  })

  it.each(['failed', 'retried'])('never leaves the flag behind when the run is %s', async (how) => {
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        for (const { lease, outcome } of commits)
          if (outcome?.kind === 'fail') await bench.storage.command(cancelOf(lease.runId))
        return bench.storage.commit(commits)
      },
    }
    const fail = (_ctx: JobContext) => Promise.reject(new Error('no'))
    const { durably, run } = await bench.perform(fail, { storage })
    expect(run).toMatchObject({ status: 'cancelled' })
    await durably.stop()
    if (how === 'retried') {
      const again = await durably.retry(run.id)
      expect(again).toMatchObject({ status: 'pending', cancelRequestedAt: null })
    }
  })
})

describe('cancelling what cannot be cancelled', () => {
  it('is NOT_FOUND for an unknown run and CONFLICT for an ended one', async () => {
    const { durably, run, job } = await bench.perform(() => Promise.reject(new Error('no')))
    await expect(durably.cancel('nothing')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(durably.cancel(run.id)).rejects.toMatchObject({ code: 'CONFLICT', status: 'failed' })
    const other = await job.trigger({}, { delay: 1000 })
    await durably.cancel(other.id)
    await expect(durably.cancel(other.id)).rejects.toMatchObject({ code: 'CONFLICT', status: 'cancelled' })
  })
})
