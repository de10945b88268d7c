import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ClosedError } from '../index'
import { anything, type Bench, createBench, createGate, found } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

/** The code of a page, loaded for the first time or anew. */
function load(version: string, soleInstance: string | undefined = 'app.db') {
  const told: string[] = []
  const durably = bench.open({ storage: { ...bench.storage, soleInstance } })
  durably.onError((error, during) => told.push(`${during}: ${String(error)}`))
  const hold = createGate()
  const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
    await ctx.run('first', ({ signal }) => {
      signal.addEventListener('abort', () => hold.open())
      return version === 'old' ? hold.opened : undefined
    })
    return version
  })
  return { durably, job, told }
}

describe('a second instance on a storage that has one a process', () => {
  it('closes the first one before it migrates, goes on with its runs, and says so', async () => {
    const old = load('old')
    await old.durably.migrate()
    old.durably.start()
    const { id } = await old.job.trigger({})
    await settled()
    expect(old.durably.health().active).toEqual([id])

    const anew = load('new')
    const migrated = anew.durably.migrate()
    await bench.clock.advance(10_000)
    await migrated
    expect(old.durably.health()).toMatchObject({ worker: 'stopped', active: [] })
    await expect(old.job.trigger({})).rejects.toBeInstanceOf(ClosedError)
    anew.durably.start()
    await settled()
    expect(found(await anew.durably.getRun(id))).toMatchObject({ status: 'completed', output: 'new', crashCount: 0 })
    expect(anew.told).toEqual([
      expect.stringMatching(/on app\.db .*import\.meta\.hot\.dispose\(\(\) => durably\.close\(\)\)/),
    ])
    expect(old.told).toEqual([])
  })

  it('closes it when it starts without migrating, too', async () => {
    const old = load('old')
    old.durably.start()
    const anew = load('new')
    anew.durably.start()
    await settled()
    expect([old.durably.health().worker, anew.durably.health().worker]).toEqual(['stopped', 'running'])
  })

  it('has nothing to say where the first one was closed, or is itself', async () => {
    const old = load('old')
    await old.durably.migrate()
    await old.durably.close()
    const anew = load('new')
    await anew.durably.migrate()
    await anew.durably.migrate()
    anew.durably.start()
    await expect(old.durably.migrate()).resolves.toBeUndefined()
    expect(anew.durably.health().worker).toBe('running')
    expect(anew.told).toEqual([])
  })

  it.each([
    ['of another name', 'other.db'],
    ['without a name', undefined],
  ])('leaves one alone on a storage %s', async (_, name) => {
    const first = load('new', 'first.db')
    const second = load('new', name)
    for (const { durably } of [first, second]) {
      await durably.migrate()
      durably.start()
    }
    expect([first, second].map(({ durably, told }) => [durably.health().worker, told])).toEqual([
      ['running', []],
      ['running', []],
    ])
  })
})
