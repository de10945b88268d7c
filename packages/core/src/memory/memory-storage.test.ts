import { describe, expect, it } from 'vitest'
import { isSuspect } from '../port/crashes'
import { type Guard, LIFECYCLE, type Lifecycle, type TransitionName } from '../port/lifecycle'
import { casesFor, type ContractCase, type StorageContractSetup } from '../testing/contract/index'
import { createMemoryStorage, createMemoryStorageWith, type MemoryStorage } from './memory-storage'

/** The data are the storage: there is nothing else to open again. */
function setupOf(open: () => MemoryStorage): StorageContractSetup {
  return {
    open: async () => {
      const storage = open()
      return { storage, reopen: async () => storage, close: async () => {} }
    },
  }
}

const { cases } = casesFor([
  'events',
  'logs',
  'signals',
  'watch',
  'limits',
  'forks',
  'debounce',
  'archiving',
  'audit',
  'settings',
  'statistics',
  'cluster',
])

/** No two operations at the same instant, so that what should have kept its instant is seen to have a new one. */
function restlessClock(): () => number {
  let nowMs = Date.now()
  return () => nowMs++
}

describe.each([
  { clock: 'real time', now: () => Date.now },
  { clock: 'a clock that moves with every call', now: restlessClock },
])('contract with $clock', ({ now }) => {
  const setup = setupOf(() => createMemoryStorage({ now: now() }))
  for (const one of cases) it(one.name, () => one.run(setup))
})

describe('lifecycle', () => {
  const guarded = (Object.keys(LIFECYCLE) as TransitionName[])
    .flatMap((transition) => LIFECYCLE[transition].guards.map((guard: Guard) => ({ transition, guard })))
    // It looks for them among the ended ones only.
    .filter(({ transition, guard }) => transition !== 'purge' || guard !== 'status')

  it.each(guarded)('$transition without its guard $guard is noticed', async ({ transition, guard }) => {
    const lifecycle = without(transition, guard)
    expect(
      await firstFailing(setupOf(() => createMemoryStorageWith({ lifecycle, now: restlessClock() }))),
    ).not.toBeNull()
  })

  it('a lost worker that counts for the neighbours of its suspect is noticed', async () => {
    const open = () => {
      const storage = createMemoryStorage()
      const suspectsFirst: typeof storage.recover = async (params) => {
        const running = await storage.getRuns({ statuses: ['running'] })
        const others = running.filter((run) => !isSuspect(run)).map(({ id }) => id)
        const suspects = await storage.recover({ ...params, held: [...params.held, ...others] })
        return [...suspects, ...(await storage.recover(params))]
      }
      return { ...storage, recover: suspectsFirst }
    }
    expect((await firstFailing(setupOf(open)))?.name).toContain('suspects')
  })

  function without(transition: TransitionName, guard: Guard): Lifecycle {
    const guards = LIFECYCLE[transition].guards.filter((one: Guard) => one !== guard)
    return { ...LIFECYCLE, [transition]: { ...LIFECYCLE[transition], guards } }
  }

  async function firstFailing(setup: StorageContractSetup): Promise<ContractCase | null> {
    for (const one of cases) {
      const failed = await one.run(setup).then(
        () => false,
        () => true,
      )
      if (failed) return one
    }
    return null
  }
})
