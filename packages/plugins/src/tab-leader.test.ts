import { createDurably, createMemoryStorage, InvalidOptionError } from '@coji/durably-core'
import { expect, it } from 'vitest'
import { withTabLeader, type TabLeaderOptions } from './tab-leader'

it.each<readonly [string, TabLeaderOptions]>([
  ['name', { name: '' }],
  ['staleThreshold', { staleThreshold: 0 }],
  ['heartbeatInterval', { heartbeatInterval: Number.NaN }],
  ['twice', { staleThreshold: 9000 }],
  ['onLeadership', { onLeadership: 1 } as unknown as TabLeaderOptions],
])('refuses a bad option when it is made: %s', (word, options) => {
  expect(() => withTabLeader(options)).toThrow(InvalidOptionError)
  expect(() => withTabLeader(options)).toThrow(word)
})

it('says what the platform lacks when it is used, not when it is made', () => {
  const plugin = withTabLeader()
  const durably = createDurably({ storage: createMemoryStorage() })
  // Node has no Web Locks before version 24.
  if (Reflect.get(globalThis, 'navigator')?.locks !== undefined) return
  expect(() => durably.use(plugin)).toThrow('needs Web Locks')
})
