import { afterEach, expect, it } from 'vitest'
import { createMemoryStorage } from '../memory/memory-storage'
import { countCalls } from '../testing/test-bench'
import { createTaskQueue, type TaskQueue } from './index'

interface NodeProcess {
  getBuiltinModule(name: 'node:async_hooks'): {
    createHook(hooks: { init(id: number, type: string): void }): { enable(): void; disable(): void }
  }
}

const { process } = globalThis as unknown as { readonly process: NodeProcess }
const { createHook } = process.getBuiltinModule('node:async_hooks')

const TASKS = 2000

let queue: TaskQueue

afterEach(() => queue.close())

/** Executes so many tasks, and some before that are not counted. */
async function countedIn(work: () => Promise<unknown>): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {}
  const hook = createHook({
    init(_id, type) {
      counts[type] = (counts[type] ?? 0) + 1
    },
  })
  hook.enable()
  await work()
  hook.disable()
  return counts
}

function open() {
  const counted = countCalls(createMemoryStorage({ keepEnded: Number.POSITIVE_INFINITY }))
  let left = 0
  let done = () => {}
  queue = createTaskQueue({ storage: counted.storage, concurrency: 16, logger: null })
  queue.register('work', async () => {
    left -= 1
    if (left === 0) done()
  })
  queue.start()
  const executed = async (tasks: number, enqueue: () => Promise<unknown>) => {
    left = tasks
    const all = new Promise<void>((resolve) => {
      done = resolve
    })
    await Promise.all([enqueue(), all])
  }
  return { counted, executed }
}

const enqueueEach = () => Promise.all(Array.from({ length: TASKS }, (_, number) => queue.enqueue('work', { number })))
const enqueueAll = () =>
  queue.enqueueMany(
    'work',
    Array.from({ length: TASKS }, (_, payload) => ({ payload })),
  )

it.each([
  ['one by one', enqueueEach],
  ['together', enqueueAll],
] as const)('a task in memory is six promises at most, and no timer, enqueued %s', async (_how, enqueue) => {
  const { executed } = open()
  await executed(TASKS, enqueue)
  const { PROMISE = 0, Timeout = 0 } = await countedIn(() => executed(TASKS, enqueue))
  expect(PROMISE / TASKS).toBeLessThanOrEqual(6)
  expect(Timeout / TASKS).toBeLessThan(0.01)
})

it('tasks are claimed, ended and stored together', async () => {
  const { counted, executed } = open()
  await executed(TASKS, enqueueEach)
  counted.reset()
  await executed(TASKS, enqueueEach)
  const { claim = 0, commit = 0, enqueue = 0, ...others } = counted.calls
  expect(claim).toBeLessThan(TASKS / 4)
  expect(commit).toBeLessThan(TASKS / 4)
  expect(enqueue).toBeLessThanOrEqual(TASKS / 500)
  // What is kept of those that ended is looked after by the thousand.
  expect(Object.values(others).reduce((sum, calls) => sum + calls, 0)).toBeLessThan(TASKS / 20)
})
