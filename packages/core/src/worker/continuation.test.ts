import { afterEach, describe, expect, it } from 'vitest'
import { createDurably, type Durably } from '../instance'
import { defineJob, type ContinuationBy } from '../job'
import { createMemoryStorage, type MemoryStorage } from '../memory'
import { StorageError } from '../base'
import { createFakeClock, type FakeClock } from '../testing/fake-clock'

const START = Date.UTC(2030, 0, 1)
const MINUTE = 60_000

const open: { readonly durably: Durably; readonly clock: FakeClock }[] = []
afterEach(async () => {
  for (const { durably, clock } of open.splice(0)) {
    const closing = durably.close()
    // Bodies that nobody ends are waited for.
    await clock.advance(10_000)
    await closing
  }
})

function stage(continuation: ContinuationBy | undefined) {
  const clock = createFakeClock(START)
  const storage = createMemoryStorage({ now: () => clock.now() })
  let isCut = false
  const process = (workerId: string, mayBeCut: boolean) => {
    const cut = <T extends (...args: never[]) => Promise<unknown>>(call: T): T =>
      ((...args: never[]) =>
        isCut && mayBeCut
          ? Promise.reject(new StorageError('STORAGE_UNAVAILABLE', 'The network is down.'))
          : call(...args)) as T
    const { claim, commit, renew, recover, nextDue, getSteps } = storage
    const own: MemoryStorage = {
      ...storage,
      ...{ claim: cut(claim), commit: cut(commit), renew: cut(renew), recover: cut(recover) },
      ...{ nextDue: cut(nextDue), getSteps: cut(getSteps) },
    }
    const durably = createDurably({ storage: own, logger: null, workerId, environment: { clock, random: () => 0.5 } })
    open.push({ durably, clock })
    const seen: { aborted: boolean; end: () => void } = { aborted: false, end: () => {} }
    const input = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const
    durably.register({
      long: defineJob({ name: 'long', input, continuation }, (ctx) =>
        ctx.run('work', async ({ signal }) => {
          signal.addEventListener('abort', () => {
            seen.aborted = true
          })
          await new Promise<void>((resolve) => {
            seen.end = resolve
          })
          return workerId
        }),
      ),
    })
    return { durably, seen }
  }
  const cutOff = (is: boolean) => {
    isCut = is
  }
  return { clock, storage, cutOff, one: process('one', true), other: process('other', false) }
}

async function begun(continuation?: ContinuationBy) {
  const all = stage(continuation)
  all.one.durably.start()
  const { id } = await all.one.durably.trigger('long', null)
  await all.clock.advance(1000)
  all.other.durably.start()
  return { ...all, id }
}

describe('a run whose worker is cut off', () => {
  it('is ended by it before its lease is over, and taken by another one', async () => {
    const { clock, storage, cutOff, one, id } = await begun()
    cutOff(true)
    await clock.advance(29_000)
    expect(one.seen.aborted).toBe(true)
    await clock.advance(10_000)
    expect(await storage.getRun(id)).toMatchObject({ status: 'running', ownerId: 'other' })
  })

  it('is not to be confirmed where its job does not say so', async () => {
    const { clock, cutOff, other, id } = await begun()
    cutOff(true)
    await clock.advance(24_000)
    expect(await other.durably.getRun(id)).toMatchObject({ status: 'running', continuationState: 'NONE' })
    expect(await other.durably.explain(id)).not.toContain('CONFIRMING')
  })

  it('goes on where that is to be confirmed, and nobody takes it meanwhile', async () => {
    const { clock, storage, cutOff, one, other, id } = await begun('confirm')
    cutOff(true)
    await clock.advance(4 * MINUTE)
    expect([one.seen.aborted, await storage.getRun(id)]).toMatchObject([false, { status: 'running', ownerId: 'one' }])
    expect(await other.durably.explain(id)).toContain('CONFIRMING')
    const state = async () => (await other.durably.getRun(id))?.continuationState
    expect(await state()).toBe('CONFIRMING')
    expect((await other.durably.getRuns()).map(({ continuationState }) => continuationState)).toEqual(['CONFIRMING'])
    cutOff(false)
    await clock.advance(10_000)
    expect(await other.durably.explain(id)).not.toContain('CONFIRMING')
    expect(await state()).toBe('NONE')
    one.seen.end()
    await clock.advance(1000)
    expect(await storage.getRun(id)).toMatchObject({ status: 'completed', crashCount: 0 })
    expect(await storage.getSteps(id)).toMatchObject([{ output: '"one"' }])
  })

  it('ends itself at its own deadline, which is before that of the database', async () => {
    const { clock, storage, cutOff, one, id } = await begun({ confirmFor: 2 * MINUTE })
    await clock.advance(10_000)
    cutOff(true)
    const { leaseUntil } = (await storage.getRun(id)) ?? {}
    await clock.advance(2 * MINUTE - 4000)
    expect([one.seen.aborted, clock.now() < Date.parse(leaseUntil ?? '')]).toEqual([true, true])
    expect(await storage.getRun(id)).toMatchObject({ status: 'running', ownerId: 'one' })
    await clock.advance(20_000)
    expect(await storage.getRun(id)).toMatchObject({ status: 'running', ownerId: 'other', crashCount: 1 })
  })

  it('has the longer lease from its start on, and by each renewal', async () => {
    const { clock, storage, id } = await begun('confirm')
    const leftMs = async () => Date.parse((await storage.getRun(id))?.leaseUntil ?? '') - clock.now()
    expect(await leftMs()).toBeGreaterThan(4 * MINUTE)
    await clock.advance(10 * MINUTE)
    expect(await leftMs()).toBeGreaterThan(4 * MINUTE)
  })

  it('refuses a continuation that makes no sense', () => {
    expect(() => stage('perhaps' as never)).toThrow("'abort', 'confirm' or { confirmFor }")
    expect(() => stage({ confirmFor: -1 })).toThrow('confirmFor')
  })
})
