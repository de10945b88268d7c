import { InvalidOptionError } from '@coji/durably-core'
import { Cron } from 'croner'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { LONG_PATIENCE_MS } from '../../../test/pace'
import { reportSuite } from '../../../test/report'
import { scaled } from '../../../test/scale'
import { Calendar } from '../src/calendar'
import { nextByTemporal, transitionsOf } from './calendar-oracle'

/** With clocks that are set by an hour, by half an hour, at midnight, in the south, twice a year around Ramadan, and never. */
const ZONES = [
  ...['America/New_York', 'America/Santiago', 'America/Havana', 'America/St_Johns', 'Europe/Berlin', 'Europe/Dublin'],
  ...['Africa/Cairo', 'Africa/Casablanca', 'Asia/Beirut', 'Asia/Tokyo', 'Australia/Lord_Howe', 'Pacific/Chatham'],
]
const FROM = Date.UTC(2024, 0, 1)
const TO = Date.UTC(2027, 0, 1)
const PATTERNS = scaled({ quick: 12, full: 200 })
const INSTANTS = scaled({ quick: 4, full: 12 })

/** From 0 up to 1, the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

function randomPattern(random: () => number): string {
  const pick = (choices: readonly string[]) => choices[Math.floor(random() * choices.length)] as string
  const number = (below: number) => String(Math.floor(random() * below))
  const minute = pick(['0', '30', number(60), `${number(30)},5${number(10)}`, '*', '*/15', '10-50/20', '0,15,30,45'])
  const hour = pick(['0', '1', '2', '3', number(24), '0,2', '1,13', '2,14', '0-4', '*', '*/2', '22-23', '1-9/4'])
  const day = pick(['*', '*', '?', '1', '15', '31', '29', '1-7', '5,25'])
  const month = pick(['*', '*', '*', '3', '10', '2', '3,10,11', '1-6'])
  const weekday = pick(['*', '*', '?', '0', '1-5', '6,0', '3'])
  return [minute, hour, day, month, weekday].join(' ')
}

/** Every other one is near an instant at which the clock is set, where there are such. */
function randomInstant(random: () => number, transitions: readonly number[]): number {
  const near = transitions[Math.floor(random() * transitions.length * 2)]
  if (near === undefined) return Math.floor(FROM + random() * (TO - FROM))
  return Math.floor(near + (random() * 40 - 36) * 3_600_000)
}

describe('a calendar', () => {
  it.each(ZONES)('says what Temporal says, from any instant: %s', { timeout: LONG_PATIENCE_MS }, (zone) => {
    const random = randomFrom(ZONES.indexOf(zone) + 1)
    const wrong: unknown[] = []
    const transitions = transitionsOf(zone, { from: FROM, to: TO })
    for (let count = 0; count < PATTERNS; count++) {
      const cron = randomPattern(random)
      const calendar = open(cron, zone)
      for (let instant = 0; instant < INSTANTS; instant++) {
        const after = randomInstant(random, transitions)
        const expected = nextByTemporal({ cron, zone, after })
        const found = calendar?.next(after) ?? null
        if (found !== expected) wrong.push({ cron, after: text(after), found: text(found), expected: text(expected) })
      }
    }
    reportSuite({ suite: 'calendars against Temporal', zone, patterns: PATTERNS, instants: PATTERNS * INSTANTS })
    expect(wrong).toEqual([])
  })
})

function open(cron: string, zone: string): Calendar | null {
  try {
    return new Calendar({ cron, zone })
  } catch (error) {
    // There is no 31st of February.
    if (error instanceof InvalidOptionError) return null
    throw error
  }
}

function text(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

it.each([
  ['0 9 ? * 1', '2030-01-07T09:00:00.000Z'],
  ['0 9 8 * ?', '2030-01-08T09:00:00.000Z'],
  ['0 9 ? * ?', '2030-01-01T09:00:00.000Z'],
])('a day that is left open is no day by itself: %s', (cron, expected) => {
  expect(text(new Calendar({ cron, zone: 'UTC' }).next(Date.UTC(2030, 0, 1)))).toBe(expected)
})

it('is asked for an instant once, however often somebody looks before that has come', () => {
  const calendar = new Calendar({ cron: '0 * * * *', zone: 'Asia/Tokyo' })
  const computed = vi.spyOn(Cron.prototype, 'nextRun')
  onTestFinished(() => computed.mockRestore())
  const [ten, hour] = [Date.UTC(2030, 0, 1, 10), 3_600_000]
  for (let ms = 0; ms < hour; ms += 60_000) expect(calendar.next(ten + ms)).toBe(ten + hour)
  expect(computed).toHaveBeenCalledOnce()
  for (let ms = 0; ms < hour; ms += 60_000) expect(calendar.next(ten + hour + ms)).toBe(ten + 2 * hour)
  expect(computed).toHaveBeenCalledTimes(2)
})

describe('what is no calendar', () => {
  it.each([
    ['0 2 * *', 'UTC', '4 fields'],
    ['0 0 2 * * *', 'UTC', '6 fields'],
    ['2026-01-01T00:00:00', 'UTC', '1 fields'],
    ['60 2 * * *', 'UTC', '"60" is no minute'],
    ['0 24 * * *', 'UTC', '"24" is no hour'],
    ['0 9-5 * * *', 'UTC', '"9-5" is no hour'],
    ['0 5/0 * * *', 'UTC', '"5/0" is no hour'],
    ['0 2 32 * *', 'UTC', 'not understood'],
    ['0 0 31 2 *', 'UTC', 'never fires'],
    ['0 2 * * *', 'Mars/Olympus', 'no time zone "Mars/Olympus"'],
  ])('is refused with one clear error: %s %s', (cron, zone, expected) => {
    expect(() => new Calendar({ cron, zone })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(expected) }),
    )
  })
})
