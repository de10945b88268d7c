import { systemClock } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openApi } from './api'

/** Few enough for one page, and for one batch. */
const RUNS = 90

/** On a storage that answers within the turn of the event loop in which it is asked. */
function working() {
  let late = 0
  let asked: number | undefined
  const askedAtTurns: number[] = []
  const turn = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    askedAtTurns.push(asked ?? 0)
  }
  // Once it matters, each look at the clock comes late.
  const monotonic = () => {
    if (asked !== undefined) late += 100
    return systemClock.monotonic() + late
  }
  const storage = createMemoryStorage()
  const api = openApi({ storage, environment: { clock: { ...systemClock, monotonic, turn } } })
  /** From now on it is counted how often the storage is asked for this. */
  const count = (method: 'getSteps' | 'command') => {
    asked = 0
    const act = storage[method].bind(storage) as (...given: unknown[]) => Promise<never>
    storage[method] = (...given: unknown[]) => {
      asked = (asked ?? 0) + 1
      return act(...given)
    }
  }
  /** How much had been asked each time that the event loop turned in the midst of it. */
  const inTheMidst = () => askedAtTurns.filter((times) => times > 0 && times < RUNS)
  return { ...api, count, inTheMidst }
}

describe('the event loop turns', () => {
  it('while what many runs wait for is read', async () => {
    const { durably, ask, count, inTheMidst } = working()
    durably.defineJob({ name: 'approve', input: z.unknown() }, (ctx) => ctx.waitFor('it', { schema: z.unknown() }))
    for (let n = 0; n < RUNS; n++) await durably.trigger('approve', n)
    await durably.runUntilIdle()
    count('getSteps')
    const { waits } = (await ask(`GET /waits?limit=${RUNS}`)).json
    expect(waits).toHaveLength(RUNS)
    expect(inTheMidst()).not.toEqual([])
  })

  it('while something is done to many runs', async () => {
    const { durably, ask, count, inTheMidst } = working()
    durably.defineJob({ name: 'job', input: z.unknown() }, () => 1)
    for (let n = 0; n < RUNS; n++) await durably.trigger('job', n, { delay: 3_600_000 })
    count('command')
    const { id } = (await ask('POST /bulk', { body: { action: 'cancel', filter: {} } })).json
    await durably.runUntilIdle()
    expect((await durably.getRun(id))?.output).toEqual({ done: RUNS, skipped: 0 })
    expect(inTheMidst()).not.toEqual([])
  })
})
