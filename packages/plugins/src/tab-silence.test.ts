import { expect, it } from 'vitest'
import { createSilence, type Silence } from './tab-silence'

const SECOND = 1000

function start(): Silence {
  return createSilence({ tickMs: SECOND, limitMs: 10 * SECOND, startedAt: 0 })
}

/** Ticks each second from `from` to `to`; the second at which it was silent for too long, or `null`. */
function listen(silence: Silence, from: number, to: number): number | null {
  for (let second = from; second <= to; second++) if (silence.tick(second * SECOND, true)) return second
  return null
}

it('is too long after as many ticks as it takes, and begins again', () => {
  const silence = start()
  expect(listen(silence, 1, 30)).toBe(10)
  expect(listen(silence, 11, 30)).toBe(20)
})

it('begins again with everything that is heard', () => {
  const silence = start()
  expect(listen(silence, 1, 9)).toBe(null)
  silence.heard(9.5 * SECOND)
  expect(listen(silence, 10, 30)).toBe(20)
})

it('counts next to nothing of a pause of the tab itself', () => {
  const silence = start()
  expect(silence.tick(1000 * SECOND, true)).toBe(false)
  expect(listen(silence, 1001, 1030)).toBe(1008)
})

it('counts nothing of the time in which the tab was hidden', () => {
  const silence = start()
  for (let second = 1; second <= 100; second++) expect(silence.tick(second * SECOND, false)).toBe(false)
  expect(listen(silence, 101, 130)).toBe(110)
})
