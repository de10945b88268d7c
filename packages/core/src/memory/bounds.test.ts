import { describe, expect, it } from 'vitest'
import type { RunRecord } from '../port/records'
import type { Storage } from '../port/storage'
import { newLog, newRun, outcomeOf, runCommit, stepWrite, template } from '../testing/contract/builders'
import type { NewRun } from '../port/writes'
import { createMemoryStorage, type MemoryStorage } from './memory-storage'

async function claimOne(storage: Storage, jobs: readonly string[] = ['job']): Promise<RunRecord> {
  const params = {
    workerId: 'w',
    claimToken: 'token',
    jobs,
    limit: 1,
    leaseMs: 60_000,
    holdsSuspect: false,
    events: [],
  }
  const [run] = await storage.claim(params)
  if (run === undefined) throw new Error('There was no run to claim.')
  return run
}

async function end(storage: Storage, { id, leaseEpoch }: RunRecord): Promise<void> {
  const lease = { runId: id, epoch: leaseEpoch, token: 'token', leaderEpoch: null }
  const outcome = outcomeOf('complete', { events: [template('run:complete')] })
  await storage.commit([runCommit({ lease, commitNo: 1 }, { steps: [stepWrite()], logs: [newLog()], outcome })])
}

async function endNew(storage: Storage, over: Partial<NewRun> = {}): Promise<string> {
  await storage.enqueue([newRun({ jobName: 'ending', ...over })])
  const run = await claimOne(storage, ['ending'])
  await end(storage, run)
  return run.id
}

async function idsLeft(storage: Storage): Promise<string[]> {
  return (await storage.getRuns({})).map(({ id }) => id).sort()
}

const retry = (runId: string) => ({ kind: 'retry', runId, holdsSuspect: false, events: [] }) as const

describe('keepEnded', () => {
  it('drops the oldest ended runs with all that belongs to them', async () => {
    const storage = createMemoryStorage({ keepEnded: 2 })
    const ids = []
    for (let index = 0; index < 5; index++) ids.push(await endNew(storage))
    expect(await idsLeft(storage)).toEqual(ids.slice(3))
    expect(await storage.getSteps(ids[0] ?? '')).toEqual([])
    expect(await storage.events.getEvents(ids[0] ?? '', {})).toEqual([])
    expect(await storage.logs.getLogs(ids[0] ?? '', {})).toEqual([])
    expect((await storage.counts({})).completed).toBe(2)
  })

  it('frees the idempotency key of what it drops', async () => {
    const storage = createMemoryStorage({ keepEnded: 1 })
    await endNew(storage, { idempotencyKey: 'k' })
    const again = () =>
      storage.enqueue([newRun({ jobName: 'ending', idempotencyKey: 'k', start: { afterMs: 60_000 } })])
    expect((await again())[0]?.created).toBe(false)
    await endNew(storage)
    expect((await again())[0]?.created).toBe(true)
  })

  it('never drops a run that has not ended', async () => {
    const storage = createMemoryStorage({ keepEnded: 0 })
    await storage.enqueue([newRun(), newRun()])
    const running = await claimOne(storage)
    for (let index = 0; index < 3; index++) await endNew(storage)
    expect((await idsLeft(storage)).length).toBe(2)
    await end(storage, running)
    expect((await idsLeft(storage)).length).toBe(1)
  })

  it('counts a run that was retried or removed no more', async () => {
    const storage = createMemoryStorage({ keepEnded: 2 })
    const [retried, removed] = [await endNew(storage), await endNew(storage)]
    await storage.command({ kind: 'remove', runId: removed })
    // A completed run cannot be retried: take one that failed.
    expect((await storage.command(retry(retried))).applied).toBe(false)
    const failed = newRun({ jobName: 'failing' })
    await storage.enqueue([failed])
    await storage.command({ kind: 'cancel', runId: failed.id, events: { cancelled: [], requested: [] } })
    expect((await storage.command(retry(failed.id))).applied).toBe(true)
    const next = await endNew(storage)
    expect(await idsLeft(storage)).toEqual([retried, failed.id, next].sort())
  })

  it('gives a run that ends a second time its new place', async () => {
    const storage = createMemoryStorage({ keepEnded: 2 })
    const first = newRun({ jobName: 'first' })
    const cancel = { kind: 'cancel', runId: first.id, events: { cancelled: [], requested: [] } } as const
    await storage.enqueue([first])
    await storage.command(cancel)
    const second = await endNew(storage)
    await storage.command(retry(first.id))
    await storage.command(cancel)
    const third = await endNew(storage)
    expect(await idsLeft(storage)).toEqual([first.id, third].sort())
    expect(await storage.getRun(second)).toBeNull()
  })

  it('keeps the children of a parent that has not ended', async () => {
    const storage = createMemoryStorage({ keepEnded: 1 })
    await storage.enqueue([newRun()])
    const parent = await claimOne(storage)
    const children = []
    for (let index = 0; index < 4; index++) children.push(await endNew(storage, { parentRunId: parent.id }))
    await endNew(storage)
    const other = await endNew(storage)
    expect(await idsLeft(storage)).toEqual([parent.id, ...children, other].sort())
    await storage.command({ kind: 'remove', runId: children[0] ?? '' })
    await end(storage, parent)
    expect(await idsLeft(storage)).toEqual([parent.id])
  })

  it('keeps the children of a parent that was retried by hand, as long as it goes on', async () => {
    const storage = createMemoryStorage({ keepEnded: 3 })
    const parent = newRun({ jobName: 'parent' })
    const cancel = { kind: 'cancel', runId: parent.id, events: { cancelled: [], requested: [] } } as const
    await storage.enqueue([parent])
    const children = [
      await endNew(storage, { parentRunId: parent.id }),
      await endNew(storage, { parentRunId: parent.id }),
    ]
    for (let round = 0; round < 2; round++) {
      await storage.command(cancel)
      await storage.command(retry(parent.id))
    }
    children.push(await endNew(storage, { parentRunId: parent.id }))
    await storage.command({ kind: 'remove', runId: children.shift() ?? '' })
    const others = []
    for (let index = 0; index < 5; index++) others.push(await endNew(storage))
    expect(await idsLeft(storage)).toEqual([parent.id, ...children, ...others.slice(2)].sort())
    await storage.command(cancel)
    expect((await idsLeft(storage)).length).toBe(3)
  })

  it('does not grow with runs that end and are removed', async () => {
    const storage = createMemoryStorage({ keepEnded: 10 })
    for (let index = 0; index < 500; index++) {
      await storage.command({ kind: 'remove', runId: await endNew(storage) })
    }
    for (let index = 0; index < 12; index++) await endNew(storage)
    expect((await idsLeft(storage)).length).toBe(10)
  })
})

interface NodeProcess {
  cpuUsage(): { readonly user: number; readonly system: number }
}
const { process } = globalThis as unknown as { readonly process: NodeProcess }

/** Of this process: what others do meanwhile is none of it. */
function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

describe('cost of a claim', () => {
  async function claimAndEnd(storage: MemoryStorage, rounds: number): Promise<number> {
    const started = processorMs()
    for (let round = 0; round < rounds; round++) await end(storage, await claimOne(storage))
    return processorMs() - started
  }

  async function filled(over: Partial<NewRun>, count: number): Promise<MemoryStorage> {
    const storage = createMemoryStorage()
    await storage.enqueue(Array.from({ length: count }, () => newRun({ priority: 1, ...over })))
    if (count > 0) await claimOne(storage).catch(() => null)
    await storage.enqueue(Array.from({ length: 2000 }, () => newRun()))
    return storage
  }

  it('does not depend on how many runs are blocked or not due', async () => {
    const empty = await filled({}, 0)
    const blocked = await filled({ concurrencyKey: 'key' }, 50_000)
    const later = await filled({ start: { afterMs: 3_600_000 } }, 50_000)
    const base = await claimAndEnd(empty, 1000)
    // Walking 50,000 runs for each claim would take a hundred times as long and more.
    expect(await claimAndEnd(blocked, 1000)).toBeLessThan(20 * base + 200)
    expect(await claimAndEnd(later, 1000)).toBeLessThan(20 * base + 200)
  })
})

describe('cost of a page, and of a purge that finds little', () => {
  async function ended(count: number): Promise<MemoryStorage> {
    const storage = createMemoryStorage({ keepEnded: count })
    const runs = Array.from({ length: count }, () => newRun())
    await storage.enqueue(runs)
    const events = { cancelled: [], requested: [] }
    for (const { id } of runs) await storage.command({ kind: 'cancel', runId: id, events })
    return storage
  }

  async function pageAndPurge(storage: MemoryStorage, rounds: number): Promise<number> {
    const keepNewest = (await storage.counts({})).cancelled - rounds
    const started = processorMs()
    let cursor: RunRecord | undefined
    for (let round = 0; round < rounds; round++) {
      const page = await storage.getRuns({ limit: 3, ...(cursor !== undefined && { cursor }) })
      expect(page.length).toBe(3)
      cursor = page.at(-1)
      expect(await storage.purge({ statuses: ['cancelled'], keepNewest, limit: 1 })).toBe(1)
    }
    return processorMs() - started
  }

  it('does not depend on how many runs there are', async () => {
    const [few, many] = [await ended(1000), await ended(30_000)]
    const base = await pageAndPurge(few, 200)
    // Sorting 30,000 runs for each would take a hundred times as long and more.
    expect(await pageAndPurge(many, 200)).toBeLessThan(5 * base + 200)
  })
})

describe('a clock that is set back', () => {
  it('holds nothing up, and time goes on from where it was', async () => {
    let nowMs = Date.UTC(2026, 10, 1, 12)
    const storage = createMemoryStorage({ now: () => nowMs })
    const [before, later] = [newRun(), newRun({ start: { afterMs: 1000 } })]
    await storage.enqueue([before, later])
    nowMs -= 3_600_000
    const after = newRun()
    await storage.enqueue([after])
    const jobs = ['job']
    const terms = { workerId: 'w', claimToken: 't', jobs, leaseMs: 60_000, holdsSuspect: false, events: [] }
    const claim = async () => (await storage.claim({ ...terms, limit: 9 })).map(({ id }) => id)
    expect(await claim()).toEqual([before.id, after.id])
    expect(await storage.nextDue(jobs)).toMatchObject({ runInMs: 1000, leaseInMs: 60_000 })
    nowMs += 1000
    expect(await claim()).toEqual([later.id])
    const [newest, oldest] = [await storage.getRun(after.id), await storage.getRun(before.id)]
    expect(newest?.createdAt).toBe(oldest?.createdAt)
  })
})

it('is a database of its own, and says so', () => {
  const [one, other] = [createMemoryStorage(), createMemoryStorage()]
  expect(one.location).toMatch(/^memory: /)
  expect(one.location).not.toBe(other.location)
})
