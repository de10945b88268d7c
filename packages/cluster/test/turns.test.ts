import { createDurably, defineJob } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { createFakeClock } from '@coji/durably-core/testing'
import { describe, expect, it } from 'vitest'
import { createInbox, createScheduler } from '../src/index'
import { MINUTE, schemaOf, START } from './stage'

/** On a storage that answers within the turn of the event loop in which it is asked. */
function working() {
  const fake = createFakeClock(START)
  let elapsed = 0
  let created = 0
  const createdAtTurns: number[] = []
  const clock = {
    ...fake,
    // Each look at the clock comes late.
    monotonic: () => (elapsed += 100),
    turn: () =>
      new Promise<void>((resolve) => {
        setImmediate(() => {
          createdAtTurns.push(created)
          resolve()
        })
      }),
  }
  const storage = createMemoryStorage({ now: () => fake.now() })
  const durably = createDurably({ storage, logger: null, environment: { clock } })
  const input = schemaOf<unknown>()
  durably.register({
    tick: defineJob({ name: 'tick', input }, () => {}),
    each: defineJob({ name: 'each', input, on: 'x' }, () => {}),
    last: defineJob({ name: 'last', input, on: 'y', debounce: { wait: 1000, key: 'n' } }, () => {}),
  })
  durably.on('run:trigger', () => {
    created += 1
  })
  return { durably, clock: fake, createdAtTurns }
}

describe('the event loop turns', () => {
  it('while many schedules fire', async () => {
    const { durably, clock, createdAtTurns } = working()
    const schedules = createScheduler(durably)
    for (let n = 0; n < 3000; n++) schedules.define(`s${n}`, { job: 'tick', payload: n, every: MINUTE })
    await schedules.tick()
    await clock.stall(MINUTE)
    await schedules.tick()
    expect(createdAtTurns.filter((created) => created > 0 && created < 3000)).not.toEqual([])
  })

  it.each([
    { what: 'while many messages are delivered', type: 'x', many: 1500 },
    { what: 'while runs are made of what was gathered', type: 'y', many: 600 },
  ])('$what', async ({ type, many }) => {
    const { durably, clock, createdAtTurns } = working()
    const inbox = createInbox(durably)
    for (let n = 0; n < many; n++) await durably.publish({ type, payload: { n } })
    await inbox.drain()
    await clock.stall(MINUTE)
    await inbox.drain()
    expect(createdAtTurns.filter((created) => created > 0 && created < many)).not.toEqual([])
  })
})
