import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineJob, type JobContext, type Storage } from '../index'
import { settled } from '../testing/fake-clock'
import { anything, type Bench, countCalls, createBench, found } from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const MANY = Array.from({ length: 200 }, (_, n) => n)

async function quiet(): Promise<void> {
  for (let round = 0; round < 3; round++) await bench.clock.advance(0)
}

/** Counts reads of signals, and has the history of what they found. */
function countUnread() {
  const signals = found(bench.storage.signals)
  const reads: number[] = []
  const storage: Storage = {
    ...bench.storage,
    signals: {
      ...signals,
      async getUnread(runId) {
        const unread = await signals.getUnread(runId)
        reads.push(unread.length)
        return unread
      },
    },
  }
  return { storage, reads }
}

describe('waits that look at the same moment', () => {
  const waitForAll = (ctx: JobContext) => Promise.all(MANY.map((n) => ctx.waitFor(`signal ${n}`)))

  it('share one read of the signals', async () => {
    const { storage, reads } = countUnread()
    const { run, durably, now } = await bench.perform(waitForAll, { storage })
    await quiet()
    expect(await now()).toMatchObject({ status: 'pending' })
    expect(reads).toEqual([0])
    for (const n of MANY) await durably.signal(run.id, `signal ${n}`, n)
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed', output: MANY })
    // Not one for each wait that looks.
    expect(reads.length).toBeLessThanOrEqual(MANY.length)
  })

  it('share one read for each signal that comes while the run is held', async () => {
    const { storage, reads } = countUnread()
    const { run, durably, now } = await bench.perform(
      async (ctx) => {
        const held = ctx.run(
          'held',
          ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
        )
        await Promise.race([held, waitForAll(ctx)])
        return 'all came'
      },
      { storage },
    )
    for (const n of MANY.slice(0, 20)) {
      await durably.signal(run.id, `signal ${n}`, n)
      await settled()
    }
    expect(reads.length).toBeLessThanOrEqual(21)
    expect((await durably.getSteps(run.id)).filter(({ status }) => status === 'completed')).toHaveLength(20)
    await durably.cancel(run.id)
    await bench.clock.advance(6000)
    expect(await now()).toMatchObject({ status: 'cancelled' })
  })

  it('take what has one name in the order in which it came, each once', async () => {
    const { run, durably, now } = await bench.perform((ctx) =>
      Promise.all(MANY.map((n) => ctx.waitFor(`wait ${n}`, { signal: 'message' }))),
    )
    for (const n of MANY) await durably.signal(run.id, 'message', n)
    await quiet()
    expect(await now()).toMatchObject({ status: 'completed', output: MANY })
  })

  it('share one read of the children, of some hundreds at a time', async () => {
    const counted = countCalls(bench.storage)
    const asked: number[] = []
    const storage: Storage = {
      ...counted.storage,
      getRuns(query) {
        asked.push(found(query.ids).length)
        return counted.storage.getRuns(query)
      },
    }
    const many = Array.from({ length: 700 }, (_, n) => n)
    // Nobody here runs it.
    const child = defineJob({ name: 'child', input: anything }, () => 1)
    const { now } = await bench.perform(
      async (ctx) => {
        const born = await Promise.all(many.map((n) => ctx.trigger(`start ${n}`, child, n)))
        counted.reset()
        await Promise.all(born.map((run, n) => ctx.wait(`end ${n}`, run)))
      },
      { storage },
    )
    await quiet()
    expect(await now()).toMatchObject({ status: 'pending' })
    expect(asked).toEqual([500, 200])
    expect(counted.calls['getRun']).toBeUndefined()
  })
})
