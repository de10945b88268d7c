import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Durably, type DurablyOptions, InvalidOptionError, type Plugin } from '../index'
import type { WorkerSwitch } from '../extend'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, createBench, createGate, found } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

interface Lead {
  readonly plugin: Plugin
  readonly switches: WorkerSwitch[]
  readonly log: string[]
}

/** Writes down what it is asked, and starts the worker only when the test does. */
function createLead(): Lead {
  const switches: WorkerSwitch[] = []
  const log: string[] = []
  const plugin: Plugin = {
    name: 'lead',
    leadWorker(worker, durably) {
      switches.push(worker)
      log.push('lead')
      return () => void log.push(`leave ${durably.health().worker}`)
    },
  }
  return { plugin, switches, log }
}

function openLed(
  options: Partial<DurablyOptions> = {},
): Lead & { readonly durably: Durably; readonly worker: () => WorkerSwitch } {
  const lead = createLead()
  const durably = bench.open({ workerId: 'me', ...options })
  durably.use(lead.plugin)
  return { ...lead, durably, worker: () => found(lead.switches.at(-1)) }
}

describe('a plugin that decides when the worker runs', () => {
  it('keeps the worker still after start() until it starts it', async () => {
    const { durably, worker } = openLed()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(5000)
    expect(durably.health().worker).toBe('stopped')
    expect(await durably.getRun(id)).toMatchObject({ status: 'pending' })
    worker().start()
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
    await worker().stop({ timeout: 0 })
    expect(durably.health().worker).toBe('stopped')
  })

  it('hears which due runs the worker does not execute, and says what they wait for while it leads', async () => {
    const { durably, worker } = openLed()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const { id } = await job.trigger({})
    const other = await durably.trigger('of others')
    durably.start()
    expect([worker().knows('job'), worker().knows('of others')]).toEqual([true, false])
    expect(await worker().unknownJobs()).toEqual(['of others'])
    expect(await durably.explain(id)).toContain('is due; no worker runs in this process')
    worker().explain((jobName) => (jobName === 'job' ? null : 'somebody else has it.'))
    expect(await durably.explain(id)).toContain('is due; no worker runs in this process')
    expect(await durably.explain(other.id)).toMatch(/is due; somebody else has it\.$/)
    await durably.stop()
    expect(await durably.explain(other.id)).toContain('waits for a worker that knows the job')
  })

  it('is asked once for two starts, and leaves once for stop() and close()', async () => {
    const { durably, worker, log } = openLed()
    durably.start()
    durably.start()
    worker().start()
    await settled()
    await durably.stop()
    await durably.stop()
    await durably.close()
    expect(log).toEqual(['lead', 'leave stopped'])
  })

  it('leaves at close() after the worker has stopped', async () => {
    const { durably, worker, log } = openLed()
    durably.start()
    worker().start()
    await settled()
    await durably.close()
    expect(log).toEqual(['lead', 'leave stopped'])
  })

  it('takes part again after stop() and start()', async () => {
    const { durably, worker, switches, log } = openLed()
    durably.start()
    await durably.stop()
    durably.start()
    expect(log).toEqual(['lead', 'leave stopped', 'lead'])
    found(switches[0]).start()
    expect(durably.health().worker).toBe('stopped')
    worker().start()
    await found(switches[0]).stop()
    expect(durably.health().worker).toBe('running')
  })

  it('starts nothing while stop() waits, and can hasten it', async () => {
    const { durably, worker, log } = openLed()
    const body = createGate()
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('long', () => body.opened))
    durably.start()
    worker().start()
    const { id } = await job.trigger({})
    await settled()
    const stopped = durably.stop()
    worker().start()
    expect(log).toEqual(['lead'])
    void worker().stop({ timeout: 0 })
    await bench.clock.advance(10)
    await stopped
    expect(log).toEqual(['lead', 'leave stopped'])
    expect(durably.health().worker).toBe('stopped')
    expect(await durably.getRun(id)).toMatchObject({ status: 'pending' })
  })

  describe('that lets it finish', () => {
    function openWithLongJob() {
      const led = openLed({ concurrency: 2 })
      const bodies: string[] = []
      const gates = { first: createGate(), second: createGate() }
      const job = led.durably.defineJob({ name: 'job', input: anything }, (ctx, input) => {
        const { gate } = input as { gate?: keyof typeof gates }
        return ctx.run('step', async ({ signal }) => {
          bodies.push(String(gate))
          if (gate !== undefined) await gates[gate].opened
          return signal.aborted
        })
      })
      led.durably.start()
      led.worker().start()
      return { ...led, job, gates, bodies }
    }

    it('sees what is in hand go on, nothing begin, and the worker stop at its end', async () => {
      const { durably, worker, job, gates, bodies } = openWithLongJob()
      const inHand = await job.trigger({ gate: 'first' })
      await settled()
      const finished = worker().finish()
      const due = await job.trigger({})
      worker().finish()
      await bench.clock.advance(60_000)
      expect(bodies).toEqual(['first'])
      expect(durably.health()).toMatchObject({ worker: 'stopping', active: [inHand.id] })
      gates.first.open()
      await finished
      expect(durably.health().worker).toBe('stopped')
      expect(await durably.getRun(inHand.id)).toMatchObject({ status: 'completed', output: false, crashCount: 0 })
      expect(await durably.getRun(due.id)).toMatchObject({ status: 'pending' })
    })

    it('can have it take runs again beside those in hand', async () => {
      const { durably, worker, job, gates, bodies } = openWithLongJob()
      await job.trigger({ gate: 'first' })
      await settled()
      const finished = worker().finish()
      worker().start()
      expect(durably.health().worker).toBe('running')
      await job.trigger({ gate: 'second' })
      await settled()
      expect(bodies).toEqual(['first', 'second'])
      const finishedAgain = worker().finish()
      gates.first.open()
      // What was called off does not stop the worker.
      await finished
      expect(durably.health().worker).toBe('stopping')
      gates.second.open()
      await finishedAgain
      expect(durably.health().worker).toBe('stopped')
      worker().start()
      expect(await job.triggerAndWait({})).toMatchObject({ output: false })
    })

    it('can hasten it', async () => {
      const { durably, worker, job } = openWithLongJob()
      const { id } = await job.trigger({ gate: 'first' })
      await settled()
      const finished = worker().finish()
      void worker().stop({ timeout: 0 })
      await bench.clock.advance(10)
      await finished
      expect(durably.health().worker).toBe('stopped')
      expect(await durably.getRun(id)).toMatchObject({ status: 'pending', crashCount: 0 })
    })
  })

  it('does not concern runUntilIdle()', async () => {
    const { durably, log } = openLed()
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    await job.trigger({})
    expect(await durably.runUntilIdle()).toMatchObject({ ran: 1 })
    expect(log).toEqual([])
  })

  it('tells onError when it cannot leave', async () => {
    const durably = bench.open()
    const errors: unknown[] = []
    durably.onError((error, during) => errors.push([during, String(error)]))
    durably.use({
      name: 'stuck',
      leadWorker: () => () => Promise.reject(new Error('stuck')),
    })
    durably.start()
    await durably.stop()
    expect(errors).toEqual([['stop', 'Error: stuck']])
  })

  it('is one of each instance, and used before start()', () => {
    const { durably } = openLed()
    expect(() => durably.use({ ...createLead().plugin, name: 'other' })).toThrow('"lead" and "other"')
    const started = bench.open()
    started.start()
    expect(() => started.use(createLead().plugin)).toThrow('before start()')
    expect(() => durably.use({ name: 'bad', leadWorker: 1 } as unknown as Plugin)).toThrow(InvalidOptionError)
  })
})

describe('the lease that a plugin needs', () => {
  async function leaseOfRun(durably: Durably): Promise<number> {
    const body = createGate()
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('long', () => body.opened))
    durably.start()
    const { id } = await job.trigger({})
    await settled()
    const run = found(await bench.storage.getRun(id))
    body.open()
    return Date.parse(found(run.leaseUntil)) - Date.parse(found(run.heartbeatAt))
  }

  it('is used when the application gave none, the longest of several', async () => {
    const durably = bench.open()
    for (const seconds of [60, 120, 90]) durably.use({ name: `${seconds}`, staleThreshold: seconds * 1000 })
    expect(await leaseOfRun(durably)).toBe(120_000)
  })

  it('is not used when the application gave one', async () => {
    const durably = bench.open({ staleThreshold: 40_000 })
    durably.use({ name: 'long', staleThreshold: 120_000 })
    expect(await leaseOfRun(durably)).toBe(40_000)
  })

  it('is what the worker allows itself, too', async () => {
    const durably = bench.open({ workerId: 'me' })
    durably.use({ name: 'long', staleThreshold: 120_000 })
    const signals: AbortSignal[] = []
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => {
      signals.push(ctx.signal)
      return ctx.run('long', () => new Promise(() => {}))
    })
    durably.start()
    await job.trigger({})
    await settled()
    bench.storage.renew = () => Promise.reject(new Error('away'))
    await bench.clock.advance(60_000)
    expect(found(signals[0]).aborted).toBe(false)
    await bench.clock.advance(60_000)
    expect(found(signals[0]).aborted).toBe(true)
  })

  it.each([0, Number.NaN, 9999])('is refused when it is %d', (staleThreshold) => {
    expect(() => bench.open().use({ name: 'short', staleThreshold })).toThrow(InvalidOptionError)
  })
})
