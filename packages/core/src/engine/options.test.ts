import { expect, it } from 'vitest'
import { createDurably } from '../index'
import { createMemoryStorage } from '../memory/memory-storage'

it.each([
  [{ pollingInterval: 0 }, 'pollingInterval must be more than 0 ms, not 0.'],
  [{ heartbeatInterval: Number.NaN }, 'heartbeatInterval must be more than 0 ms, not NaN.'],
  [{ staleThreshold: -1 }, 'staleThreshold must be more than 0 ms, not -1.'],
  [{ staleThreshold: Number.MAX_SAFE_INTEGER }, 'staleThreshold must be at most 100 years, not 9007199254740991.'],
  [{ staleThreshold: 1000, heartbeatInterval: 501 }, 'staleThreshold must be at least twice heartbeatInterval'],
  [{ concurrency: 1.5 }, 'concurrency must be an integer from 1, not 1.5.'],
  [{ maxCrashes: 0 }, 'maxCrashes must be an integer from 1, not 0.'],
])('%o is refused under the name that was written', (options, message) => {
  expect(() => createDurably({ storage: createMemoryStorage(), ...options })).toThrow(message)
})
