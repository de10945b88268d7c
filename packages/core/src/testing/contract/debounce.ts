import type { BatchedRun, DebouncedRun, DebounceStorage, EnqueueAnswer, NewRun, RunRecord } from '../../port'
import { assert, assertEqual, assertMatches } from '../assert'
import { FAR_MS, newRun, template } from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

function debounceOf({ storage }: Kit): DebounceStorage {
  assert(storage.debounce !== undefined, 'debounce: the storage should have it')
  return storage.debounce
}

function debounced(over: Partial<NewRun> = {}, terms: Partial<Omit<DebouncedRun, 'run'>> = {}): DebouncedRun {
  const { key = 'k', waitMs = FAR_MS, maxWaitMs = null } = terms
  return { run: newRun({ start: { afterMs: waitMs }, ...over }), key, waitMs, maxWaitMs }
}

async function countRuns({ storage }: Kit): Promise<number> {
  return (await storage.getRuns({})).length
}

function assertAnswer({ created, run }: EnqueueAnswer, wasCreated: boolean, wanted: Partial<RunRecord>): void {
  assertEqual(created, wasCreated, 'created')
  assertMatches(run, wanted, 'the run answered')
}

export const DEBOUNCE_CASES = casesOf('debounce', 'debounce', {
  'a second trigger gives its payload to the run of the first, and puts it off': async (kit) => {
    const debounce = debounceOf(kit)
    const labels = { a: 'b' }
    const first = await debounce.enqueue(
      debounced({ payload: '1', labels, events: [template('run:trigger')] }, { waitMs: 1000 }),
    )
    const second = await debounce.enqueue(debounced({ payload: '2', labels: { c: 'd' } }))
    assertAnswer(first, true, { payload: '1', labels, lastEventSequence: 1, version: 1 })
    const same = { id: first.run.id, payload: '2', labels, version: 2, createdAt: first.run.createdAt }
    assertAnswer(second, false, { ...same, status: 'pending' })
    assert(String(second.run.availableAt) > String(first.run.availableAt), 'the second trigger should put it off')
    assertEqual(await kit.run(first.run.id), second.run, 'the run as it is read')
    assertEqual(await countRuns(kit), 1, 'number of runs')
  },

  'it is due when the time after the last trigger is over': async (kit) => {
    const debounce = debounceOf(kit)
    const { run } = await debounce.enqueue(debounced())
    assertEqual(await kit.claimedIds(), [], 'claimed before')
    await debounce.enqueue(debounced({}, { waitMs: 0 }))
    assertEqual(await kit.claimedIds(), [run.id], 'claimed after')
  },

  'it is put off no further than the longest wait from its creation': async (kit) => {
    const debounce = debounceOf(kit)
    const { run } = await debounce.enqueue(debounced({}, { waitMs: 5000, maxWaitMs: 60_000 }))
    const { run: later } = await debounce.enqueue(debounced({}, { waitMs: FAR_MS, maxWaitMs: 60_000 }))
    assertEqual(Date.parse(String(later.availableAt)) - Date.parse(run.createdAt), 60_000, 'milliseconds to wait')
  },

  'other keys, jobs and tenants have runs of their own': async (kit) => {
    const debounce = debounceOf(kit)
    const all = [
      debounced(),
      debounced({}, { key: '' }),
      debounced({ jobName: 'other' }),
      debounced({ tenant: 'acme' }),
    ]
    for (const each of all) assertAnswer(await debounce.enqueue(each), true, { id: each.run.id })
    assertEqual(await countRuns(kit), all.length, 'number of runs')
  },

  'what has begun is left alone, and the next trigger makes a run': async (kit) => {
    const debounce = debounceOf(kit)
    const kinds = ['complete', 'retryLater', 'release', 'park'] as const
    for (const kind of kinds) {
      const key = `before ${kind}`
      const { run } = await debounce.enqueue(debounced({ payload: '1' }, { key, waitMs: 0 }))
      const holder = await kit.hold()
      assertEqual(holder.id, run.id, 'claimed')
      const beside = await debounce.enqueue(debounced({ payload: '2' }, { key }))
      assertAnswer(beside, true, { payload: '2' })
      const left = await holder.leave(kind)
      await kit.order('cancel', beside.run.id)
      const after = await debounce.enqueue(debounced({ payload: '3' }, { key }))
      assertAnswer(after, true, { payload: '3' })
      assertEqual(await kit.run(run.id), left, `the run that began, ${key}`)
      if (left?.status === 'pending') await kit.order('cancel', run.id)
    }
  },

  'one that was cancelled and is retried by hand is left alone': async (kit) => {
    const debounce = debounceOf(kit)
    const { run } = await debounce.enqueue(debounced({ payload: '1' }))
    await kit.order('cancel', run.id)
    await kit.order('retry', run.id)
    assertMatches(await debounce.enqueue(debounced({ payload: '2' })), { created: true }, 'the next trigger')
    assertMatches(await kit.run(run.id), { payload: '1', status: 'pending' }, 'the run')
  },

  'one that was removed makes room': async (kit) => {
    const debounce = debounceOf(kit)
    const { run } = await debounce.enqueue(debounced())
    await kit.order('cancel', run.id)
    await kit.order('remove', run.id)
    assertMatches(await debounce.enqueue(debounced()), { created: true }, 'the next trigger')
    assertEqual(await countRuns(kit), 1, 'number of runs')
  },

  'the same trigger sent twice is one, also when it has begun and another came': async (kit) => {
    const debounce = debounceOf(kit)
    const first = debounced({ payload: '1', events: [template('run:trigger')] }, { waitMs: 0 })
    await debounce.enqueue(first)
    assertAnswer(await debounce.enqueue(first), true, { id: first.run.id })
    await kit.hold()
    assertAnswer(await debounce.enqueue(first), true, { id: first.run.id, status: 'running' })
    const next = await debounce.enqueue(debounced({ payload: '2' }))
    assertAnswer(await debounce.enqueue(first), true, { id: first.run.id })
    assertEqual(await kit.run(next.run.id), next.run, 'the run of the next trigger')
    assertAnswer(await debounce.enqueue(debounced({ payload: '3' })), false, { id: next.run.id, payload: '3' })
    assertEqual(await countRuns(kit), 2, 'number of runs')
  },

  'triggers at the same moment are one run': async (kit) => {
    const debounce = debounceOf(kit)
    const all = Array.from({ length: 20 }, (_, n) => debounced({ payload: String(n) }))
    const answers = await Promise.all(all.map((each) => debounce.enqueue(each)))
    assertEqual(answers.filter(({ created }) => created).length, 1, 'number of runs created')
    assertEqual(new Set(answers.map(({ run }) => run.id)).size, 1, 'number of runs answered')
    assertEqual(await countRuns(kit), 1, 'number of runs')
  },
})

interface BatchTerms extends Partial<Omit<BatchedRun, 'run'>> {
  readonly within?: number
}

function batched(
  entries: readonly unknown[],
  { key = 'k', max = 3, maxBytes = 1000, within = FAR_MS }: BatchTerms = {},
  over: Partial<NewRun> = {},
): BatchedRun {
  return { run: newRun({ payload: JSON.stringify(entries), start: { afterMs: within }, ...over }), key, max, maxBytes }
}

/** What the runs of all keys are for, by the time of their creation. */
async function listsOf({ storage }: Kit): Promise<readonly unknown[]> {
  return (await storage.getRuns({})).map(({ payload }) => JSON.parse(payload ?? 'null')).reverse()
}

export const BATCH_CASES = casesOf('debounce', 'batch', {
  'a second trigger appends its entries to the run of the first, which stays due when it was': async (kit) => {
    const debounce = debounceOf(kit)
    const labels = { a: 'b' }
    const first = await debounce.join(batched([1, ', ]'], { max: 4 }, { labels, events: [template('run:trigger')] }))
    const second = await debounce.join(batched([{ n: 3 }], { max: 4, within: 0 }, { labels: { c: 'd' } }))
    assertAnswer(first, true, { payload: '[1,", ]"]', labels, lastEventSequence: 1, version: 1 })
    const same = { id: first.run.id, payload: '[1,", ]",{"n":3}]', labels, version: 2 }
    assertAnswer(second, false, { ...same, availableAt: first.run.availableAt, createdAt: first.run.createdAt })
    assertEqual(await kit.run(first.run.id), second.run, 'the run as it is read')
    assertEqual(await kit.claimedIds(), [], 'claimed')
  },

  'it is due at once when it is full, and the next trigger makes a run': async (kit) => {
    const debounce = debounceOf(kit)
    const { run } = await debounce.join(batched([1, 2]))
    await debounce.join(batched([3]))
    assertAnswer(await debounce.join(batched([4])), true, { payload: '[4]' })
    assertEqual(await kit.claimedIds(), [run.id], 'claimed')
    assertEqual((await kit.run(run.id)).payload, '[1,2,3]', 'its list')
  },

  'what has no room for all entries of a trigger is left to its time': async (kit) => {
    const debounce = debounceOf(kit)
    await debounce.join(batched([1, 2]))
    assertAnswer(await debounce.join(batched([3, 4])), true, { payload: '[3,4]' })
    assertAnswer(await debounce.join(batched([5], { maxBytes: 6 })), true, { payload: '[5]' })
    assertAnswer(await debounce.join(batched([6], { maxBytes: 5 })), false, { payload: '[5,6]' })
    const key = 'bytes'
    await debounce.join(batched(['é'], { key }))
    assertAnswer(await debounce.join(batched(['é'], { key, maxBytes: 10 })), true, { payload: '["é"]' })
    assertAnswer(await debounce.join(batched(['é'], { key, maxBytes: 11 })), false, { payload: '["é","é"]' })
    assertEqual(await kit.claimedIds(), [], 'claimed')
  },

  'other keys, jobs and tenants have lists of their own': async (kit) => {
    const debounce = debounceOf(kit)
    const others = [{}, { jobName: 'other' }, { tenant: 'acme' }].map((over) => batched([1], {}, over))
    for (const each of [...others, batched([1], { key: '' })]) {
      assertAnswer(await debounce.join(each), true, { id: each.run.id })
    }
    assertEqual(await countRuns(kit), 4, 'number of runs')
  },

  'a run that has begun keeps its list': async (kit) => {
    const debounce = debounceOf(kit)
    const { run } = await debounce.join(batched([1], { within: 0 }))
    const holder = await kit.hold()
    assertAnswer(await debounce.join(batched([2])), true, { payload: '[2]' })
    await holder.leave('retryLater')
    assertAnswer(await debounce.join(batched([3])), false, { payload: '[2,3]' })
    assertEqual((await kit.run(run.id)).payload, '[1]', 'its list')
  },

  'the same trigger sent twice comes once, also when its run has begun and another came': async (kit) => {
    const debounce = debounceOf(kit)
    const [first, second] = [batched([1], { within: 0 }), batched([2])]
    await debounce.join(first)
    await debounce.join(second)
    const sendAgain = async () => {
      assertAnswer(await debounce.join(first), true, { id: first.run.id, payload: '[1,2]' })
      assertAnswer(await debounce.join(second), false, { id: first.run.id, payload: '[1,2]' })
    }
    await sendAgain()
    await kit.hold()
    await sendAgain()
    await debounce.join(batched([3]))
    await sendAgain()
    assertEqual(await listsOf(kit), [[1, 2], [3]], 'lists')
  },

  'one that was removed makes room': async (kit) => {
    const debounce = debounceOf(kit)
    const { run } = await debounce.join(batched([1]))
    await debounce.join(batched([2]))
    await kit.order('cancel', run.id)
    await kit.order('remove', run.id)
    assertAnswer(await debounce.join(batched([3])), true, { payload: '[3]' })
    assertEqual(await countRuns(kit), 1, 'number of runs')
  },

  'of triggers at the same moment none is lost, none comes twice, and no list is too long': async (kit) => {
    const debounce = debounceOf(kit)
    const all = Array.from({ length: 20 }, (_, n) => batched([n]))
    await Promise.all([...all, ...all].map((each) => debounce.join(each)))
    const lists = (await listsOf(kit)) as readonly (readonly number[])[]
    assertEqual(lists.map(({ length }) => length).sort(), [2, 3, 3, 3, 3, 3, 3], 'lengths')
    assertEqual(
      lists.flat().sort((a, b) => a - b),
      all.map((_each, n) => n),
      'entries',
    )
  },
})

export const DEBOUNCE_TRANSACTION_CASES = casesOf('transaction', 'debounce in a transaction', {
  'a run is put off when the transaction of the caller is committed, and not when it is not': async (kit) => {
    const { debounce } = kit.storage
    if (debounce === undefined) return
    const { run } = await kit.transaction.run((trx) => debounce.enqueue(debounced({ payload: '1' }), trx))
    const rolledBack = kit.transaction.run(async (trx) => {
      const { created } = await debounce.enqueue(debounced({ payload: '2' }), trx)
      assertEqual(created, false, 'created')
      throw new Error('never mind')
    })
    await rolledBack.catch(() => {})
    assertMatches(await kit.run(run.id), { payload: '1', version: 1 }, 'the run')
  },

  'entries come with the transaction of the caller, and not without it': async (kit) => {
    const { debounce } = kit.storage
    if (debounce === undefined) return
    await kit.transaction.run((trx) => debounce.join(batched([1]), trx))
    const lost = batched([2])
    const rolledBack = kit.transaction.run(async (trx) => {
      assertAnswer(await debounce.join(lost, trx), false, { payload: '[1,2]' })
      throw new Error('never mind')
    })
    await rolledBack.catch(() => {})
    assertAnswer(await debounce.join(lost), false, { payload: '[1,2]' })
  },
})
