import { InvalidOptionError } from '@coji/durably-core'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { anything, instance } from '../test/job-instance'
import { withTabLeader, type TabLeaderOptions } from './tab-leader'

it.each<readonly [string, TabLeaderOptions]>([
  ['name', { name: '' }],
  ['version', { version: '' }],
  ['version', { version: Number.NaN }],
  ['version', { version: null } as unknown as TabLeaderOptions],
  ['staleThreshold', { staleThreshold: 0 }],
  ['heartbeatInterval', { heartbeatInterval: Number.NaN }],
  ['twice', { staleThreshold: 9000 }],
  ['onLeadership', { onLeadership: 1 } as unknown as TabLeaderOptions],
])('refuses a bad option when it is made: %s', (word, options) => {
  expect(() => withTabLeader(options)).toThrow(InvalidOptionError)
  expect(() => withTabLeader(options)).toThrow(word)
})

describe('a platform without Web Locks', () => {
  afterEach(() => {
    vi.unstubAllGlobals()
  })

  it('has nobody to share with: start() starts the worker, and onError is told', async () => {
    // Node has them from version 24 on.
    vi.stubGlobal('navigator', undefined)
    const told: unknown[] = []
    const durably = instance()
    durably.onError((error) => told.push(error))
    durably.use(withTabLeader({ onLeadership: (isLeader) => told.push(isLeader) }))
    expect(durably.health().worker).toBe('stopped')
    expect(told).toEqual([])

    durably.start()
    expect(durably.health().worker).toBe('running')
    expect(told).toEqual([expect.objectContaining({ code: 'INVALID_OPTION' }), true])
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('step', () => 'done'))
    expect(await job.triggerAndWait({})).toMatchObject({ output: 'done' })

    await durably.stop()
    expect(durably.health().worker).toBe('stopped')
  })
})
