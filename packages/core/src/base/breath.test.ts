import { describe, expect, it } from 'vitest'
import { createBreath } from './breath'
import { systemClock } from './environment'
import { createDurably } from '../index'
import { createMemoryStorage } from '../memory/memory-storage'
import { createFakeClock } from '../testing/fake-clock'
import { anything } from '../testing/test-bench'

describe('a worker with much to do', () => {
  it('lets the rest of the process have its turn', async () => {
    const durably = createDurably({ storage: createMemoryStorage() })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('step', () => 1))
    await job.batchTrigger(Array.from({ length: 3000 }, () => ({ payload: {} })))
    let completedBefore: number | null = null
    systemClock.schedule(0, async () => {
      completedBefore = (await durably.counts()).completed
    })
    await durably.runUntilIdle()
    expect(completedBefore).not.toBeNull()
    expect(completedBefore).toBeLessThan(1500)
    await durably.close()
  })
})

describe('a breath', () => {
  it('is not taken while the event loop turns by itself', () => {
    const turned: (() => void)[] = []
    const fake = createFakeClock()
    let elapsed = 0
    const turn = () => new Promise<void>((resolve) => turned.push(resolve))
    const breathe = createBreath({ ...fake, monotonic: () => elapsed, turn })
    expect(breathe()).toBeUndefined()
    elapsed = 9
    expect(breathe()).toBeUndefined()
    elapsed = 10
    expect(breathe()).toBeInstanceOf(Promise)
  })

  it('is never taken by a clock that stands still', () => {
    const breathe = createBreath(createFakeClock())
    expect([breathe(), breathe()]).toEqual([undefined, undefined])
  })
})
