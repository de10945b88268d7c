import { createDurably, createMemoryStorage, StorageError, type Storage } from '@coji/durably'
import { afterEach, expect, test, vi } from 'vitest'
import { announceEvents } from './announce'
import { INITIAL_STATE } from './demo-state'
import { createObservable } from './observable'

afterEach(() => void vi.useRealTimers())

/** A worker that meets this many refusals before the storage answers. */
async function noticesAfter(refusals: number, code: 'STORAGE_UNAVAILABLE' | 'STORAGE_FULL'): Promise<string[]> {
  vi.useFakeTimers()
  const memory = createMemoryStorage()
  let left = refusals
  const claim: Storage['claim'] = async (params) => {
    if (left === 0) return memory.claim(params)
    left -= 1
    throw new StorageError(code, 'Refused.')
  }
  const durably = createDurably({ storage: { ...memory, claim }, logger: null })
  const state = createObservable(INITIAL_STATE)
  announceEvents(durably, state)
  const input = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const
  const job = durably.defineJob({ name: 'job', input }, () => null)
  durably.start()
  await job.trigger(null)
  await vi.advanceTimersByTimeAsync(10_000)
  const titles = state.get().notices.map(({ title }) => title)
  await durably.close()
  return titles
}

test('trouble that is over at once is told to nobody, and what lasts is', async () => {
  expect(await noticesAfter(1, 'STORAGE_UNAVAILABLE')).toEqual([])
  expect(await noticesAfter(Number.POSITIVE_INFINITY, 'STORAGE_UNAVAILABLE')).toEqual(['The database does not answer'])
})

test('a full storage is told at once', async () => {
  expect(await noticesAfter(1, 'STORAGE_FULL')).toEqual(['The storage is full'])
})
