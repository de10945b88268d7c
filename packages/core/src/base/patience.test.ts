import { describe, expect, it } from 'vitest'
import type { Clock } from './environment'
import { createPatience } from './patience'
import { createFakeClock } from '../testing/fake-clock'

function setup() {
  const fake = createFakeClock()
  const turns: (() => void)[] = []
  let timers = 0
  const clock: Clock = {
    ...fake,
    schedule(ms, fn) {
      timers += 1
      return fake.schedule(ms, fn)
    },
    turn: () => new Promise((resolve) => turns.push(resolve)),
  }
  const turn = async () => {
    for (const resolve of turns.splice(0)) resolve()
    await Promise.resolve()
  }
  return { fake, clock, turn, timers: () => timers, turnsAsked: () => turns.length }
}

describe('patience', () => {
  it('costs no timer when the answer comes before the event loop has turned', async () => {
    const { clock, turn, timers, turnsAsked } = setup()
    const patience = createPatience(clock)
    for (let call = 0; call < 5; call++) patience(1000, () => {})()
    expect(turnsAsked()).toBe(1)
    await turn()
    expect(timers()).toBe(0)
  })

  it('ends when there is no answer, in each turn anew', async () => {
    const { clock, fake, turn, timers } = setup()
    const patience = createPatience(clock)
    const given: number[] = []
    for (const call of [0, 1, 2]) {
      patience(1000, () => given.push(call))
      const callOff = patience(1000, () => given.push(-1))
      await turn()
      callOff()
    }
    expect(timers()).toBe(6)
    await fake.advance(999)
    expect(given).toEqual([])
    await fake.advance(1)
    expect(given).toEqual([0, 1, 2])
  })
})
