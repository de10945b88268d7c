import { expect, it } from 'vitest'
import { createFakeClock } from './fake-clock'

it('shows whole milliseconds, whatever its timers were told', async () => {
  const clock = createFakeClock(1000)
  const seen: number[] = []
  for (const ms of [0.2, 1.0, 1.9, -5]) clock.schedule(ms, () => seen.push(clock.now()))
  await clock.advance(10)
  expect(seen).toEqual([1000, 1001, 1001, 1002])
})

it('never goes back, also when it is moved by what a move lets happen', async () => {
  const clock = createFakeClock(1000)
  let inner: Promise<void> = Promise.resolve()
  clock.schedule(1, () => {
    inner = clock.advance(50)
  })
  await clock.advance(10)
  await inner
  expect(clock.monotonic()).toBe(51)
  const outer = clock.advance(5)
  await clock.advance(100)
  await outer
  expect(clock.monotonic()).toBe(151)
})
