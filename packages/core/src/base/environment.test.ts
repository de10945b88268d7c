import { afterEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../index'

afterEach(() => {
  vi.useRealTimers()
})

describe('the system clock', () => {
  it('waits also longer than a timer of the platform can', async () => {
    vi.useFakeTimers()
    const days30 = 30 * 24 * 3600 * 1000
    let calls = 0
    systemClock.schedule(days30, () => {
      calls += 1
    })
    await vi.advanceTimersByTimeAsync(days30 - 1)
    expect(calls).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(calls).toBe(1)
  })

  it('can be called off, also then', async () => {
    vi.useFakeTimers()
    let calls = 0
    const callOff = systemClock.schedule(2 ** 31 + 1000, () => {
      calls += 1
    })
    await vi.advanceTimersByTimeAsync(2 ** 31)
    callOff()
    await vi.advanceTimersByTimeAsync(5000)
    expect(calls).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('takes a time that is past as now', async () => {
    vi.useFakeTimers()
    let calls = 0
    systemClock.schedule(-5, () => {
      calls += 1
    })
    await vi.advanceTimersByTimeAsync(0)
    expect(calls).toBe(1)
  })
})
