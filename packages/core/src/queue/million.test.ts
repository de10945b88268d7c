import { expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { scaled } from '../../../../test/scale'
import { createFakeClock } from '../testing/fake-clock'
import { settle } from '../testing/task-histories/settle'
import { createTaskQueue, TASK_STATES, type TaskCounts } from './index'

interface NodeProcess {
  getBuiltinModule(name: 'node:v8'): { setFlagsFromString(flags: string): void }
  getBuiltinModule(name: 'node:vm'): { runInNewContext(code: string): () => void }
  memoryUsage(): { readonly heapUsed: number }
}

const { process } = globalThis as unknown as { readonly process: NodeProcess }

const TASKS = scaled({ quick: 20_000, full: 1_000_000 })
const WAVE = 10_000
const CALL = 1000
const MB = 1024 * 1024

/** Little enough for what is left of each task, be it a hundred bytes, to show. */
const MOST_MB = scaled({ quick: 4, full: 20 })

/** Of a wave; the others succeed at once. */
const RETRIED = WAVE / 100
const DEAD = WAVE / 1000

const KEEP = { succeeded: { age: 60_000, count: 500 }, dead: { age: 120_000, count: 25 } }
const NOTHING: TaskCounts = { queued: 0, running: 0, retry_scheduled: 0, succeeded: 0, dead: 0 }

function createCollector(): () => number {
  process.getBuiltinModule('node:v8').setFlagsFromString('--expose-gc')
  const collect = process.getBuiltinModule('node:vm').runInNewContext('gc')
  return () => {
    collect()
    return process.memoryUsage().heapUsed / MB
  }
}

it(`leaves nothing behind of ${TASKS} tasks in memory, and counts them all along`, {
  timeout: LONG_PATIENCE_MS,
}, async () => {
  const heapUsed = createCollector()
  const clock = createFakeClock(undefined, settle)
  const queue = createTaskQueue<{ work: { readonly number: number } }>({
    keep: KEEP,
    retry: { maxAttempts: 2, delay: 1000 },
    concurrency: 16,
    environment: { clock },
    logger: null,
  })
  let executed = 0
  queue.register('work', ({ number }, { attempt }) => {
    executed += 1
    const fails = number % (WAVE / DEAD) === 0 || (attempt === 1 && number % (WAVE / RETRIED) === 0)
    if (fails) throw new Error('no luck')
  })
  const enqueueWave = async () => {
    for (let number = 0; number < WAVE; number += CALL) {
      const items = Array.from({ length: CALL }, (_, index) => ({ payload: { number: number + index } }))
      await queue.enqueueMany('work', items)
    }
  }
  const listed = async () => {
    const lengths = TASK_STATES.map(async (state) => [state, (await queue.list({ state, limit: 2 * WAVE })).length])
    return Object.fromEntries(await Promise.all(lengths))
  }
  queue.start()
  await enqueueWave()
  await clock.advance(200_000)
  expect(await queue.countsByState()).toEqual(NOTHING)

  const heapBefore = heapUsed()
  const startedAt = performance.now()
  executed = 0
  for (let wave = 1; wave <= TASKS / WAVE; wave++) {
    queue.pause()
    const kept = await queue.countsByState()
    await enqueueWave()
    expect(await queue.countsByState()).toEqual({ ...kept, queued: WAVE })
    queue.resume()
    await settle()
    expect(await queue.countsByState()).toMatchObject({ queued: 0, running: 0, retry_scheduled: RETRIED })
    await clock.advance(1000)
    expect(executed).toBe(wave * (WAVE + RETRIED))
    await clock.advance(10_000)
    const counts = await queue.countsByState()
    const dead = Math.min(wave * DEAD, KEEP.dead.count)
    expect(counts).toEqual({ ...NOTHING, succeeded: KEEP.succeeded.count, dead })
    expect(await listed()).toEqual(counts)
  }
  const seconds = (performance.now() - startedAt) / 1000
  await clock.advance(200_000)
  expect(await queue.countsByState()).toEqual(NOTHING)
  const heapGrownMb = heapUsed() - heapBefore
  reportSuite({
    suite: 'task queue in memory',
    tasks: TASKS,
    tasksPerSecond: Math.round(TASKS / seconds),
    heapGrownMb: Math.round(heapGrownMb * 10) / 10,
  })
  expect(heapGrownMb).toBeLessThan(MOST_MB)
  await queue.stop()
})
