import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../test/report'
import { SCALE, scaled } from '../../../test/scale'
import { createDurably, createMemoryStorage, type Durably, type Storage } from '../src/index'
import { BETTER_SQLITE3, POSTGRES } from './databases'
import { newFile, openMigrated } from './instances'

const CHILDREN = scaled({ quick: 500, full: 10_000 })
const SINGLE_CHILDREN = scaled({ quick: 200, full: 3000 })
const TOGETHER = 500
const LIMIT = 5
/** Few in the lane that counts passes: many at a time wake their parent together anyway. */
const CONCURRENCY = scaled({ quick: 2, full: 10 })

interface Place {
  readonly name: string
  open(): Promise<Storage>
}

const PLACES: readonly Place[] = [
  { name: 'memory', open: async () => createMemoryStorage() },
  ...[BETTER_SQLITE3, POSTGRES].map(({ name, dialect }) => ({
    name,
    open: async () => (await openMigrated(dialect(newFile()))).storage,
  })),
]

const running: Durably[] = []

afterEach(async () => {
  for (const durably of running.splice(0)) await durably.stop()
})

/** A worker, and what it asked of its storage so far. */
function startCounted(storage: Storage, concurrency: number) {
  const asked = { commits: 0, looks: 0 }
  const counted: Storage = {
    ...storage,
    commit(list) {
      asked.commits += list.length
      return storage.commit(list)
    },
    getRuns(filter) {
      asked.looks += 1
      return storage.getRuns(filter)
    },
  }
  const durably = createDurably({ storage: counted, concurrency, logger: null })
  running.push(durably)
  durably.start()
  return { durably, asked }
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

/** Resolves when so many runs of a job have completed. Nobody asks for them: that would be work, too. */
function completed(durably: Durably, jobName: string, count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = count
    const offFail = durably.on('run:fail', ({ error }) => reject(new Error(error)))
    const off = durably.on('run:complete', (event) => {
      if (event.jobName !== jobName || --left > 0) return
      off()
      offFail()
      resolve()
    })
  })
}

interface Cost {
  readonly seconds: number
  /** Of this process: what others do on the machine meanwhile takes seconds, and none of these. */
  readonly cpuSeconds: number
}

async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  const [startedAt, before] = [performance.now(), process.cpuUsage()]
  await work()
  const { user, system } = process.cpuUsage(before)
  return { seconds: (performance.now() - startedAt) / 1000, cpuSeconds: (user + system) / 1_000_000 }
}

describe.each(PLACES)('on $name', ({ name, open }) => {
  it('a job that waits for many runs costs at most twice what the runs cost', async () => {
    const { durably, asked } = startCounted(await open(), CONCURRENCY)
    const double = durably.defineJob({ name: 'double', input: z.number() }, (_ctx, n) => n * 2)
    let passes = 0
    const parent = durably.defineJob({ name: 'parent', input: z.object({}) }, async (ctx) => {
      passes += 1
      return (await ctx.waitAll('results', await ctx.triggerAll('start', double, numbers(CHILDREN)))).length
    })

    const outside = await costOf(async () => {
      const all = completed(durably, 'double', CHILDREN)
      for (let from = 0; from < CHILDREN; from += TOGETHER) {
        await double.batchTrigger(numbers(TOGETHER).map((n) => ({ payload: from + n })))
      }
      await all
    })
    const { commits: commitsOutside } = asked
    let id = ''
    const inside = await costOf(async () => {
      const end = completed(durably, 'parent', 1)
      id = (await parent.trigger({})).id
      await end
    })
    const { commits, looks } = asked

    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: CHILDREN })
    const lists = CHILDREN / TOGETHER
    // Of a machine that is slow more of them fall into one rest. Each by itself would be as many as there are children.
    expect(passes).toBeLessThanOrEqual(CHILDREN / 10)
    expect(commits - 2 * commitsOutside).toBeLessThanOrEqual(lists + 2 * passes + 2)
    expect(looks).toBeLessThanOrEqual((passes + 2) * (lists + 2))
    const cpuRatio = inside.cpuSeconds / outside.cpuSeconds
    reportSuite({
      suite: `many children, ${name}`,
      ...{ children: CHILDREN, passes, commitsBeside: commits - 2 * commitsOutside, looks },
      ...{ outsideSeconds: outside.seconds.toFixed(1), insideSeconds: inside.seconds.toFixed(1) },
      ...{ ratio: (inside.seconds / outside.seconds).toFixed(2), cpuRatio: cpuRatio.toFixed(2) },
    })
    if (SCALE === 'full') expect(cpuRatio).toBeLessThanOrEqual(2)
  })

  it('children that share a few slots come to an end, and wake their parent for many at once', async () => {
    const { durably } = startCounted(await open(), 2 * LIMIT)
    const double = durably.defineJob({ name: 'double', input: z.number() }, (_ctx, n) => n * 2)
    let passes = 0
    const parent = durably.defineJob({ name: 'parent', input: z.object({}) }, async (ctx) => {
      passes += 1
      const outputs = numbers(SINGLE_CHILDREN).map(async (n) => {
        const run = await ctx.trigger(`start ${n}`, double, n, { concurrencyKey: 'few', concurrencyLimit: LIMIT })
        return ctx.wait(`result ${n}`, run)
      })
      return (await Promise.all(outputs)).length
    })
    let id = ''
    const { seconds } = await costOf(async () => {
      const end = completed(durably, 'parent', 1)
      id = (await parent.trigger({})).id
      await end
    })
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: SINGLE_CHILDREN })
    expect(passes).toBeLessThanOrEqual(SINGLE_CHILDREN / 10)
    reportSuite({
      suite: `children with few slots, ${name}`,
      ...{ children: SINGLE_CHILDREN, passes, seconds: seconds.toFixed(1) },
    })
  })
})
