import { encodeTime } from 'ulidx'
import { describe, expect, it } from 'vitest'
import { createUlids } from './ulid'

const NOW = Date.UTC(2026, 0, 31, 9)

/** What is drawn is always the same. */
function fixed(value: number): () => number {
  return () => value
}

describe('a ULID', () => {
  it('is 26 digits of Crockford’s base 32, of which the first ten are the time', () => {
    for (const ms of [0, 1, NOW, NOW + 0.7, 2 ** 31, 2 ** 48 - 1]) {
      const id = createUlids(() => ms, Math.random)()
      expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
      expect(id.slice(0, 10)).toBe(encodeTime(Math.floor(ms), 10))
    }
  })

  it('has all its chance from what is drawn', () => {
    expect(createUlids(() => 0, fixed(0))()).toBe('0'.repeat(26))
    expect(createUlids(() => NOW, fixed(1 - 2 ** -32))().slice(10)).toBe('ZZZZZZZZFZZZZZZZ')
  })

  it('is greater than the one before, however many there are of a millisecond', () => {
    for (const chance of [Math.random, fixed(1 - 2 ** -32)]) {
      const next = createUlids(() => NOW, chance)
      let last = next()
      for (let nth = 0; nth < 100_000; nth++) {
        const id = next()
        if (!(id > last)) expect.fail(`${id} comes after ${last}`)
        last = id
      }
    }
  })

  it('is greater than the one before when the clock is set back, and when it goes on', () => {
    const times = [NOW, NOW - 3_600_000, NOW - 1, NOW, NOW + 1, NOW - 5, NOW + 2]
    let at = 0
    const next = createUlids(() => times[at++] ?? NOW, Math.random)
    const ids = times.map(next)
    expect(ids).toEqual([...ids].sort())
    expect(new Set(ids).size).toBe(times.length)
    expect(ids.map((id) => id.slice(0, 10))).toEqual(
      [ids[0], ids[0], ids[0], ids[0], ids[4], ids[4], ids[6]].map((id) => id?.slice(0, 10)),
    )
  })

  it('goes on in the next millisecond when one is used up', () => {
    let draws = 0
    // Counting begins at the very end of what there is.
    const chance = () => [0, 0, 2 - 2 ** -20, 1 - 2 ** -20][draws++] ?? 0
    const next = createUlids(() => NOW, chance)
    const [first, second] = [next(), next()]
    expect(second > first).toBe(true)
    expect(second.slice(0, 10) > first.slice(0, 10)).toBe(true)
    expect(second).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
  })

  it('is no other instance’s, of the same millisecond', () => {
    const instances = Array.from({ length: 100 }, () => createUlids(() => NOW, Math.random))
    const ids = instances.flatMap((next) => Array.from({ length: 100 }, next))
    expect(new Set(ids).size).toBe(10_000)
  })
})
