import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PermanentError, type Plugin, type Storage } from '../index'
import { anything, type Bench, createBench, createGate, found, recordEvents } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

function withPlugins(...plugins: Plugin[]) {
  const durably = bench.open({ workerId: 'me' })
  for (const plugin of plugins) durably.use(plugin)
  durably.start()
  return durably
}

/** Runs a job again at once, over the steps it has recorded. */
function withRetry(times: number): Plugin {
  return {
    name: 'retry',
    async aroundRun(_run, next) {
      for (let tries = 1; ; tries++) {
        try {
          return await next()
        } catch (error) {
          if (tries === times || error instanceof PermanentError) throw error
        }
      }
    },
  }
}

/** Runs a body again at once. */
function withStepRetry(times: number): Plugin {
  return {
    name: 'step-retry',
    async aroundStep(_step, next) {
      for (let tries = 1; tries < times; tries++) {
        try {
          return await next()
        } catch {}
      }
      return next()
    },
  }
}

/** Lets no body take longer. */
function withTimeout(ms: number): Plugin {
  return {
    name: 'timeout',
    aroundStep({ stepName }, next) {
      return new Promise((resolve, reject) => {
        const callOff = bench.clock.schedule(ms, () => reject(new Error(`Step ${stepName} took too long.`)))
        next().then(resolve, reject).finally(callOff)
      })
    },
  }
}

/** Tells somebody else of what failed. */
function withReports(report: (line: string) => void): Plugin {
  return {
    name: 'reports',
    install(durably) {
      const offs = [
        durably.on('run:fail', ({ jobName, error }) => report(`${jobName}: ${error}`)),
        durably.onError((error, during) => report(`${during}: ${String(error)}`)),
      ]
      return () => {
        for (const off of offs) off()
      }
    },
  }
}

it("a hook with a slip in its name is refused, and properties of a plugin's own are not", () => {
  const durably = bench.open()
  const misspelled = { name: 'p', arroundRun: async (_run: unknown, next: () => Promise<unknown>) => next() }
  expect(() => durably.use(misspelled)).toThrow('Did you mean "aroundRun"?')
  durably.use({ name: 'q', ...{ collected: [] } })
})

describe('aroundRun', () => {
  it('wraps each execution, the plugin used first outermost', async () => {
    const calls: string[] = []
    const wrap = (name: string): Plugin => ({
      name,
      async aroundRun({ runId, jobName, payload, attempt, signal }, next) {
        calls.push(`${name} in`)
        expect({ jobName, payload, attempt, aborted: signal.aborted }).toEqual({
          jobName: 'job',
          payload: 5,
          attempt: 1,
          aborted: false,
        })
        expect(runId).toMatch(/^[0-9A-Z]{26}$/)
        const value = await next()
        calls.push(`${name} out`)
        return value
      },
    })
    const durably = withPlugins(wrap('outer'), { name: 'none' }, wrap('inner'))
    const job = durably.defineJob({ name: 'job', input: anything }, () => {
      calls.push('job')
      return 1
    })
    expect((await job.triggerAndWait(5)).output).toBe(1)
    expect(calls).toEqual(['outer in', 'inner in', 'job', 'inner out', 'outer out'])
  })

  it('may change what is returned, and what is thrown', async () => {
    const durably = withPlugins({
      name: 'changes',
      async aroundRun(run, next) {
        const value = await next().catch((error: unknown) => {
          throw new Error(`wrapped: ${(error as Error).message}`)
        })
        return [value, run.payload]
      },
    })
    const job = durably.defineJob({ name: 'job', input: anything }, (_ctx, payload) => {
      if (payload === 'bad') throw new Error('inner')
      return 'value'
    })
    expect((await job.triggerAndWait('good')).output).toEqual(['value', 'good'])
    await expect(job.triggerAndWait('bad')).rejects.toMatchObject({ run: { error: 'wrapped: inner' } })
  })

  it('can be a retry in a few lines: recorded steps are kept, failed ones run again', async () => {
    const durably = withPlugins(withRetry(3))
    const ran: string[] = []
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      await ctx.run('good', () => ran.push('good'))
      return ctx.run('flaky', ({ attempt }) => {
        ran.push(`flaky ${attempt}`)
        if (attempt < 3) throw new Error('not yet')
        return 'at last'
      })
    })
    expect((await job.triggerAndWait({})).output).toBe('at last')
    expect(ran).toEqual(['good', 'flaky 1', 'flaky 2', 'flaky 3'])
    const [run] = await job.getRuns()
    expect(run).toMatchObject({ status: 'completed', attempt: 1, error: null })
  })

  it('that runs the job again does not start a body a second time that is still running', async () => {
    const durably = withPlugins(withRetry(2))
    const gate = createGate()
    let bodies = 0
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      Promise.all([
        ctx.run('slow', async () => {
          bodies += 1
          await gate.opened
          return 'slow'
        }),
        ctx.run('flaky', ({ attempt }) => {
          if (attempt === 1) throw new Error('not yet')
          return 'flaky'
        }),
      ]),
    )
    const { id } = await job.trigger({})
    await settled()
    gate.open()
    await bench.clock.advance(6000)
    expect(await job.getRun(id)).toMatchObject({ status: 'completed', output: ['slow', 'flaky'] })
    expect((await durably.getSteps(id)).filter(({ name }) => name === 'slow')).toHaveLength(1)
    expect(bodies).toBe(1)
  })

  it('does not retry what is permanent', async () => {
    const durably = withPlugins(withRetry(3))
    let calls = 0
    const job = durably.defineJob({ name: 'job', input: anything }, () => {
      calls += 1
      throw new PermanentError('never')
    })
    await expect(job.triggerAndWait({})).rejects.toMatchObject({ code: 'RUN_FAILED' })
    expect(calls).toBe(1)
  })

  it('that fails before the job fails the run', async () => {
    const durably = withPlugins({ name: 'bad', aroundRun: () => Promise.reject(new Error('plugin broke')) })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    await expect(job.triggerAndWait({})).rejects.toMatchObject({ run: { status: 'failed', error: 'plugin broke' } })
  })

  it('that throws at once fails the run', async () => {
    const durably = withPlugins({
      name: 'bad',
      aroundRun() {
        throw new Error('plugin broke')
      },
    })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 1)
    await expect(job.triggerAndWait({})).rejects.toMatchObject({ run: { status: 'failed', error: 'plugin broke' } })
  })
})

describe('what a plugin does not wait for', () => {
  it('may fail without ending the process', async () => {
    const durably = withPlugins({
      name: 'hasty',
      async aroundRun(_run, next) {
        void next()
        throw new Error('hasty')
      },
    })
    const job = durably.defineJob({ name: 'job', input: anything }, () => Promise.reject(new Error('no')))
    await expect(job.triggerAndWait({})).rejects.toMatchObject({ run: { error: 'hasty' } })
  })

  it('is told to onError where install or leadWorker is async', async () => {
    const durably = bench.open()
    const heard: unknown[] = []
    durably.onError((error, during) => heard.push([during, String(error)]))
    const install = async () => {
      throw new Error('no install')
    }
    const leadWorker = async () => {
      throw new Error('no lead')
    }
    durably.use({ name: 'late', install, leadWorker } as unknown as Plugin)
    durably.start()
    await settled()
    expect(heard).toEqual([
      ['install of plugin "late"', 'Error: no install'],
      ['leadWorker of plugin "late"', 'Error: no lead'],
    ])
  })
})

describe('aroundStep', () => {
  it('wraps each body, not the steps that are skipped', async () => {
    const calls: string[] = []
    const durably = withPlugins({
      name: 'spy',
      aroundStep({ stepName, stepIndex, jobName }, next) {
        calls.push(`${jobName} ${stepName} ${stepIndex}`)
        return next()
      },
    })
    let broken = true
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      await ctx.run('a', () => 1)
      await ctx.run('b', () => 2)
      if (broken) throw new Error('no')
    })
    const { id } = await job.trigger({})
    await settled()
    broken = false
    await durably.retry(id)
    await settled()
    expect(calls).toEqual(['job a 0', 'job b 1'])
  })

  it('may change the value that is stored', async () => {
    const durably = withPlugins({ name: 'double', aroundStep: async (_step, next) => ((await next()) as number) * 2 })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('a', () => 21))
    const { id, output } = await job.triggerAndWait({})
    expect(output).toBe(42)
    expect(await durably.getSteps(id)).toMatchObject([{ output: 42 }])
  })

  it('can be a retry of bodies', async () => {
    const durably = withPlugins(withStepRetry(3))
    const events = recordEvents(durably, ['step:start', 'step:fail', 'step:complete'])
    let calls = 0
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('a', () => {
        calls += 1
        if (calls < 3) throw new Error('not yet')
        return calls
      }),
    )
    expect((await job.triggerAndWait({})).output).toBe(3)
    expect(events.map(({ type }) => type)).toEqual(['step:start', 'step:complete'])
  })

  it('can be a time-out of bodies', async () => {
    const durably = withPlugins(withTimeout(100))
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('slow', () => new Promise<never>(() => {})),
    )
    const { id } = await job.trigger({})
    await bench.clock.advance(100)
    expect(await job.getRun(id)).toMatchObject({
      status: 'failed',
      error: 'Step slow took too long.',
      errorDetail: { stepName: 'slow' },
    })
  })

  it('does not start a body that it was late for', async () => {
    let ran = false
    const durably = withPlugins({
      name: 'slow',
      async aroundStep(_step, next) {
        await settled()
        await settled()
        return next()
      },
    })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('a', () => {
        ran = true
      }),
    )
    const { id } = await job.trigger({})
    await settled()
    await durably.cancel(id)
    await bench.clock.advance(6000)
    expect(await job.getRun(id)).toMatchObject({ status: 'cancelled' })
    expect(ran).toBe(false)
  })
})

describe('install', () => {
  it('gets the instance, and what it returns is called by close', async () => {
    const lines: string[] = []
    const durably = withPlugins(withReports((line) => lines.push(line)))
    const job = durably.defineJob({ name: 'job', input: anything }, () => Promise.reject(new Error('no')))
    await job.trigger({})
    await settled()
    expect(lines).toEqual(['job: no'])
    await durably.close()
    durably.emit({ type: 'run:fail', runId: 'r', jobName: 'j', error: 'x', failedStepName: null })
    expect(lines).toHaveLength(1)
  })

  it('allows chaining', () => {
    const durably = bench.open()
    expect(durably.use({ name: 'a' }).use({ name: 'b' })).toBe(durably)
  })
})

describe('records', () => {
  it.each([
    ['logs', { logs: true }, 'logs'],
    ['events', { events: true }, 'events'],
    ['some events', { events: ['run:start'] }, 'events'],
  ] as const)('of %s need a storage that can', (_what, records, capability) => {
    const { events: _events, logs: _logs, ...bare } = bench.storage
    const storage: Storage = bare
    const durably = bench.open({ storage })
    expect(() => durably.use({ name: 'history', records })).toThrow(
      expect.objectContaining({
        code: 'CAPABILITY_MISSING',
        capability,
        message: expect.stringContaining('"history"'),
      }),
    )
  })

  it('of nothing need nothing', () => {
    const { events: _events, logs: _logs, ...bare } = bench.storage
    const storage: Storage = bare
    expect(() => bench.open({ storage }).use({ name: 'none', records: { logs: false, events: [] } })).not.toThrow()
    expect(() => bench.open({ storage }).use({ name: 'none', records: { events: false } })).not.toThrow()
  })

  it('refused leave the instance without the plugin', async () => {
    const { logs: _logs, ...bare } = bench.storage
    const storage: Storage = bare
    const durably = bench.open({ storage })
    let installed = false
    const plugin: Plugin = {
      name: 'history',
      records: { logs: true },
      install() {
        installed = true
      },
    }
    expect(() => durably.use(plugin)).toThrow()
    expect(installed).toBe(false)
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.log.info('hi'))
    durably.start()
    await job.trigger({})
    await settled()
    expect(found((await job.getRuns())[0]).status).toBe('completed')
  })
})
