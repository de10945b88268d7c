import type { RunCursor, RunQuery, RunRecord } from '../../port'
import { assert, assertEqual } from '../assert'
import { newId, newRun } from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

async function found(kit: Kit, query: RunQuery): Promise<string[]> {
  return (await kit.storage.getRuns(query)).map(({ id }) => id)
}

/** All pages, one after the other; `between` happens to the last run of each before the next is asked for. */
async function pagesOf(kit: Kit, query: RunQuery, between: (last: RunRecord) => unknown = () => {}): Promise<string[]> {
  const ids: string[] = []
  for (let cursor: RunCursor | undefined; ; ) {
    const page = await kit.storage.getRuns({ ...query, ...(cursor !== undefined && { cursor }) })
    ids.push(...page.map(({ id }) => id))
    const last = page.at(-1)
    assert(ids.length <= 100, 'getRuns: the pages should end')
    if (last === undefined) return ids
    await between(last)
    cursor = { createdAt: last.createdAt, id: last.id }
  }
}

const placeOf = ({ createdAt, id }: RunRecord): RunCursor => ({ createdAt, id })

export const PAGE_CASES = casesOf('required', 'pages', {
  'follow one another without gap or double': async (kit) => {
    const runs = Array.from({ length: 7 }, (_, index) => newRun({ jobName: index % 2 === 0 ? 'even' : 'odd' }))
    await kit.storage.enqueue(runs)
    const all = await kit.storage.getRuns({})
    const ids = all.map(({ id }) => id)
    assertEqual(await pagesOf(kit, { limit: 3 }), ids, 'ids of all pages')
    const cursor = all.map(placeOf)
    const even = await found(kit, { ...(cursor[1] && { cursor: cursor[1] }), jobNames: ['even'], limit: 2 })
    assertEqual(even, [runs[4]?.id, runs[2]?.id], 'even')
    assertEqual(await found(kit, { ...(cursor[6] && { cursor: cursor[6] }) }), [], 'ids after the last')
    assertEqual(await found(kit, { limit: 0 }), [], 'ids of a page of none')
  },

  'take runs of one millisecond by their ids': async (kit) => {
    // Neither the order of writing nor that of the instants may stand in for the order of the ids.
    const runs = Array.from({ length: 40 }, () => newRun())
    const shuffled = runs.map((_, index) => runs[(index * 17) % runs.length]).filter((run) => run !== undefined)
    await kit.storage.enqueue(shuffled)
    await kit.storage.enqueue(['1', '2'].map((last) => newRun({ id: last.padStart(26, '0') })))
    const all = await kit.storage.getRuns({})
    assert(new Set(all.map(({ createdAt }) => createdAt)).size < all.length, 'enqueue: some should be of one instant')
    const byHand = [...all].sort((a, b) => compare(b.createdAt, a.createdAt) || compare(b.id, a.id))
    assertEqual(
      all.map(({ id }) => id),
      byHand.map(({ id }) => id),
      'ids by instant and id',
    )
    for (const limit of [1, 7]) {
      assertEqual(
        await pagesOf(kit, { limit }),
        all.map(({ id }) => id),
        `ids of the pages of ${limit}`,
      )
    }
  },

  'go on after a run that changed or does not match': async (kit) => {
    const [a, b, c] = [newRun(), newRun(), newRun()]
    await kit.storage.enqueue([a, b, c])
    const cursor = placeOf(await kit.order('cancel', b.id))
    assertEqual(await found(kit, { cursor, statuses: ['pending'] }), [a.id], 'ids')
  },

  'go on where a run was that is gone': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 9 }, () => newRun()))
    for (const { id } of await kit.storage.getRuns({})) await kit.order('cancel', id)
    const ids = await found(kit, {})
    const read = await pagesOf(kit, { limit: 2 }, ({ id }) => kit.order('remove', id))
    assertEqual(read, ids, 'ids of all pages')
    assertEqual((await found(kit, {})).length, 4, 'number of runs left')
  },

  'begin anywhere': async (kit) => {
    const [a, between, b] = [newId(), newId(), newId()]
    await kit.storage.enqueue([newRun({ id: a }), newRun({ id: b })])
    const { createdAt } = await kit.run(b)
    assertEqual(await found(kit, { cursor: { createdAt, id: between } }), [a], 'ids after a place between two')
    const future = { createdAt: '2099-01-01T00:00:00.000Z', id: a }
    assertEqual(await found(kit, { cursor: future }), [b, a], 'ids after a place before all')
    assertEqual(await found(kit, { cursor: { ...future, createdAt: '2001-01-01T00:00:00.000Z' } }), [], 'ids after all')
  },
})

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
