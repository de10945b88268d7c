import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { coalesce } from './coalesce'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('what is asked for often is done rarely, and what is urgent at once', async () => {
  const done: number[] = []
  const task = coalesce(250, async () => {
    done.push(Date.now() - begun)
  })
  const begun = Date.now()
  task.soon()
  await vi.advanceTimersByTimeAsync(10)
  task.soon()
  task.soon()
  await vi.advanceTimersByTimeAsync(300)
  expect(done).toEqual([0, 250])
  task.soon()
  task.now()
  await vi.advanceTimersByTimeAsync(500)
  expect(done).toEqual([0, 250, 310])
})

test('what is urgent is done after what is being done, never beside it', async () => {
  const finish: (() => void)[] = []
  const task = coalesce(250, () => new Promise<void>((resolve) => finish.push(resolve)))
  task.soon()
  await vi.advanceTimersByTimeAsync(1)
  task.now()
  await vi.advanceTimersByTimeAsync(1000)
  expect(finish.length).toBe(1)
  finish[0]?.()
  await vi.advanceTimersByTimeAsync(1)
  expect(finish.length).toBe(2)
})

test('what is called off is not done, and can be asked for again', async () => {
  let done = 0
  const task = coalesce(250, async () => {
    done += 1
  })
  task.soon()
  task.callOff()
  await vi.advanceTimersByTimeAsync(1000)
  expect(done).toBe(0)
  task.now()
  await vi.advanceTimersByTimeAsync(1)
  expect(done).toBe(1)
})
