import type { RunRecord } from '../../port'
import { assertEqual } from '../assert'
import { newRun, NO_COUNTS } from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

interface Expected {
  readonly isParked: boolean
  readonly when: string
}

/** Both reads must agree about the run, the only one of its job. */
async function assertReads(kit: Kit, { id, jobName }: RunRecord, { isParked, when }: Expected): Promise<void> {
  const query = { jobNames: [jobName] }
  for (const parked of [true, false]) {
    const ids = (await kit.storage.getRuns({ ...query, parked })).map((run) => run.id)
    assertEqual(ids, parked === isParked ? [id] : [], `ids with parked ${parked} ${when}`)
  }
  const counts = await kit.storage.counts(query)
  assertEqual(counts.parked, Number(isParked), `counts.parked ${when}`)
}

export const PARKED_CASES = casesOf('required', 'parked', {
  'begins with the command, and ends with the one that puts it back or ends it': async (kit) => {
    const run = await kit.enqueue()
    await assertReads(kit, run, { isParked: false, when: 'before' })
    for (const [kind, when] of [
      ['unpark', 'put back'],
      ['failParked', 'failed by hand'],
    ] as const) {
      await kit.order('park', run.id)
      await assertReads(kit, run, { isParked: true, when: `before it is ${when}` })
      await kit.order(kind, run.id)
      await assertReads(kit, run, { isParked: false, when })
    }
  },

  'begins with an outcome, and ends with a cancel': async (kit) => {
    const run = await (await kit.start()).leave('park')
    await assertReads(kit, run, { isParked: true, when: 'after the outcome' })
    await kit.order('cancel', run.id)
    await assertReads(kit, run, { isParked: false, when: 'cancelled' })
  },

  'is no other wait': async (kit) => {
    for (const kind of ['suspend', 'retryLater', 'release', 'fail'] as const) {
      const run = await (await kit.start()).leave(kind)
      await assertReads(kit, run, { isParked: false, when: `after ${kind}` })
    }
  },

  'is counted beside the status, and narrows with the other filters': async (kit) => {
    const job = { jobName: 'j', tenant: 't' }
    const [parked, other, waiting] = [newRun(job), newRun(job), newRun(job)]
    await kit.storage.enqueue([parked, other, waiting, newRun({ jobName: 'j' })])
    await kit.order('park', parked.id)
    const query = { jobNames: ['i', 'j'], tenant: 't' }
    const idsOf = async (conditions: object) => (await kit.storage.getRuns(conditions)).map(({ id }) => id)
    assertEqual(await idsOf({ ...query, parked: true, statuses: ['pending'] }), [parked.id], 'ids of the parked')
    assertEqual(await idsOf({ ...query, parked: false, limit: 1 }), [waiting.id], 'the newest of the others')
    assertEqual(await idsOf({ parked: true, ids: [parked.id, other.id] }), [parked.id], 'of two ids')
    assertEqual(await idsOf({ parked: true, statuses: ['running'] }), [], 'of the running ones')
    assertEqual(await idsOf({ parked: true, waitsForRetry: true }), [], 'of those that wait for a retry')
    assertEqual(await kit.storage.counts(query), { ...NO_COUNTS, pending: 3, parked: 1 }, 'counts')
    assertEqual(await kit.storage.counts({ ...query, tenant: 'u' }), NO_COUNTS, 'counts of another tenant')
    assertEqual(await kit.storage.counts({}), { ...NO_COUNTS, pending: 4, parked: 1 }, 'counts of all')
  },
})
