import { expect, it } from 'vitest'
import { createFakeClock } from './fake-clock'

it('shows whole milliseconds, whatever its timers were told', async () => {
  const clock = createFakeClock(1000)
  const seen: number[] = []
  for (const ms of [0.2, 1.0, 1.9, -5]) clock.schedule(ms, () => seen.push(clock.now()))
  await clock.advance(10)
  expect(seen).toEqual([1000, 1001, 1001, 1002])
})
