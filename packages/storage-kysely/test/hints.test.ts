import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Notifications } from '../src/dialect/hooks'
import { HintRelay } from '../src/watch/hints'
import { Watchers } from '../src/watch/watch'

const SECOND_MS = 1000
const MOST_A_SECOND = 21
const NOTIFICATION_BYTES = 8000

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

/** As long as the id of a run is. */
const newRunId = () => crypto.randomUUID().slice(0, 26)

/** Watchers whose hints go out, and what goes out. */
function openRelay() {
  const sent: string[] = []
  let listening = 0
  const notifications: Notifications = {
    send: async (_channel, payload) => void sent.push(payload),
    listen: () => {
      listening += 1
      return async () => {
        listening -= 1
      }
    },
  }
  const watchers = new Watchers()
  const relay = new HintRelay({ notifications, channel: 'durably:durably_', watchers })
  watchers.connect(relay)
  const messages = () => sent.map((payload) => JSON.parse(payload) as { due: boolean; runs: readonly string[] })
  return { relay, watchers, sent, messages, listening: () => listening }
}

it('the first after a rest goes at once, what follows soon gathers', async () => {
  const { watchers, messages } = openRelay()
  for (const runId of ['one', 'two', 'three']) {
    watchers.noteChanged([runId])
    watchers.noteDue()
    await vi.advanceTimersByTimeAsync(0)
  }
  expect(messages()).toMatchObject([{ due: true, runs: ['one'] }])
  await vi.advanceTimersByTimeAsync(100)
  expect(messages().slice(1)).toMatchObject([{ due: true, runs: ['two', 'three'] }])
  watchers.noteCancel('four')
  await vi.advanceTimersByTimeAsync(0)
  expect(messages().at(-1)).toMatchObject({ due: false, runs: [], cancels: ['four'] })
})

it('a thousand writes in a second cost twenty notifications at most, and each fits', async () => {
  const { watchers, sent, messages } = openRelay()
  const runIds = Array.from({ length: SECOND_MS }, () => newRunId())
  for (const runId of runIds) {
    watchers.noteDue()
    watchers.noteChanged([runId])
    await vi.advanceTimersByTimeAsync(1)
  }
  expect(sent.length).toBeLessThanOrEqual(MOST_A_SECOND)
  await vi.advanceTimersByTimeAsync(SECOND_MS)
  expect(messages().flatMap(({ runs }) => runs)).toEqual(runIds)
  expect(messages().every(({ due }) => due)).toBe(true)
  for (const payload of sent) expect(Buffer.byteLength(payload)).toBeLessThan(NOTIFICATION_BYTES)
})

it('so do a thousand at one moment, all of which are told', async () => {
  const { watchers, sent, messages } = openRelay()
  const runIds = Array.from({ length: 1000 }, () => newRunId())
  watchers.noteDue()
  watchers.noteChanged(runIds)
  await vi.advanceTimersByTimeAsync(SECOND_MS)
  expect(messages().flatMap(({ runs }) => runs)).toEqual(runIds)
  expect(messages().filter(({ due }) => due)).toHaveLength(1)
  expect(sent.length).toBeLessThanOrEqual(MOST_A_SECOND)
  for (const payload of sent) expect(Buffer.byteLength(payload)).toBeLessThan(NOTIFICATION_BYTES)
})

it('nor are there more of them when more is written than they can tell; what is due is told all the same', async () => {
  const { watchers, sent, messages } = openRelay()
  for (let second = 0; second < 3; second++) {
    for (let ms = 0; ms < SECOND_MS; ms++) {
      watchers.noteDue()
      watchers.noteChanged(Array.from({ length: 50 }, () => newRunId()))
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(sent.length).toBeLessThanOrEqual(MOST_A_SECOND * (second + 1))
  }
  expect(messages().every(({ due }) => due)).toBe(true)
  for (const payload of sent) expect(Buffer.byteLength(payload)).toBeLessThan(NOTIFICATION_BYTES)
  await vi.advanceTimersByTimeAsync(SECOND_MS)
  expect(vi.getTimerCount()).toBe(0)
})

it('the last of them is sent when the storage is closed, and nothing after it', async () => {
  const { relay, watchers, sent, messages } = openRelay()
  watchers.noteDue()
  watchers.noteChanged(Array.from({ length: 1000 }, () => newRunId()))
  await relay.close()
  watchers.noteDue()
  await vi.advanceTimersByTimeAsync(SECOND_MS)
  expect(messages()).toMatchObject([{ due: true }])
  expect(sent).toHaveLength(1)
  expect(vi.getTimerCount()).toBe(0)
})

it('others are listened to while somebody wants to hear of them, also when nobody waits for anything', () => {
  const { watchers, listening } = openRelay()
  watchers.subscribe(() => {})
  expect(listening()).toBe(0)
  const leave = watchers.subscribe(() => {}, { fromElsewhere: true })
  expect(listening()).toBe(1)
  watchers.rest()
  expect(listening()).toBe(1)
  leave()
  watchers.rest()
  expect(listening()).toBe(0)
})
