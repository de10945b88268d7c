import type { PurgeParams } from '../../port'
import { assertEqual } from '../assert'
import { FAR_MS, newRun, stepWrite } from './builders'
import { casesOf } from './contract-case'
import type { Holder } from './holder'
import type { Kit } from './kit'

const ALL: PurgeParams = { statuses: ['completed', 'failed', 'timed_out', 'cancelled'], limit: 100 }
const FUTURE = '2099-01-01T00:00:00.000Z'

/** Ended one after the other, oldest first. */
async function endedRuns(kit: Kit, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let index = 0; index < count; index++) {
    const holder = await kit.start()
    await holder.leave('complete', {}, { steps: [stepWrite()] })
    ids.push(holder.id)
  }
  return ids
}

async function left(kit: Kit): Promise<string[]> {
  return (await kit.storage.getRuns({})).map(({ id }) => id).sort()
}

export const PURGE_CASES = casesOf('required', 'purge', {
  'ended runs go with all that belongs to them': async (kit) => {
    const ids = await endedRuns(kit, 3)
    assertEqual(await kit.storage.purge(ALL), 3, 'runs removed')
    assertEqual(await left(kit), [], 'runs left')
    assertEqual(await kit.storage.getSteps(ids[0] ?? ''), [], 'steps left')
    assertEqual(await kit.storage.purge(ALL), 0, 'runs removed a second time')
  },

  'only runs of the given states go': async (kit) => {
    const completed = await kit.start()
    await completed.leave('complete')
    const failed = await kit.start()
    await failed.leave('fail')
    assertEqual(await kit.storage.purge({ ...ALL, statuses: ['failed'] }), 1, 'runs removed')
    assertEqual(await left(kit), [completed.id], 'runs left')
    assertEqual(await kit.storage.purge({ ...ALL, statuses: [] }), 0, 'runs removed without a state')
  },

  'runs that have not ended stay, whatever is asked for': async (kit) => {
    const ids = [(await kit.enqueue()).id, (await kit.start()).id]
    const waiting = await kit.start()
    await waiting.leave('suspend')
    const statuses = ['pending', 'assigned', 'running', 'orphaned', 'completed'] as const
    assertEqual(await kit.storage.purge({ ...ALL, statuses, before: FUTURE }), 0, 'runs removed')
    assertEqual(await left(kit), [...ids, waiting.id].sort(), 'runs left')
  },

  'olderThanMs counts from the end by the clock of the storage': async (kit) => {
    await endedRuns(kit, 2)
    assertEqual(await kit.storage.purge({ ...ALL, olderThanMs: FAR_MS }), 0, 'runs removed that are an hour old')
    assertEqual(await kit.storage.purge({ ...ALL, olderThanMs: -FAR_MS }), 2, 'runs removed of any age')
  },

  'before is an instant': async (kit) => {
    await endedRuns(kit, 2)
    const past = '2001-01-01T00:00:00.000Z'
    assertEqual(await kit.storage.purge({ ...ALL, before: past }), 0, 'runs removed that ended long ago')
    assertEqual(await kit.storage.purge({ ...ALL, before: FUTURE }), 2, 'runs removed that ended before the future')
  },

  'tenant and job narrow it': async (kit) => {
    for (const [tenant, jobName] of [
      ['a', 'x'],
      ['a', 'y'],
      ['b', 'x'],
    ] as const) {
      const holder = await kit.start({ tenant, jobName })
      await holder.leave('complete')
    }
    assertEqual(await kit.storage.purge({ ...ALL, tenant: 'c' }), 0, 'runs removed of another tenant')
    assertEqual(await kit.storage.purge({ ...ALL, tenant: 'a', jobNames: ['x'] }), 1, 'runs removed of tenant and job')
    assertEqual(await kit.storage.purge({ ...ALL, jobNames: ['x'] }), 1, 'runs removed of the job')
    assertEqual(await kit.storage.purge({ ...ALL, tenant: 'a' }), 1, 'runs removed of the tenant')
  },

  'several jobs go at once, and no list of none': async (kit) => {
    for (const jobName of ['x', 'y', 'y', 'z']) await (await kit.start({ jobName })).leave('complete')
    assertEqual(await kit.storage.purge({ ...ALL, jobNames: [] }), 0, 'runs removed of no job')
    assertEqual(await kit.storage.purge({ ...ALL, jobNames: ['none', 'other'] }), 0, 'runs removed of jobs without any')
    const params = { ...ALL, jobNames: ['x', 'none', 'y', 'x'] }
    assertEqual(await kit.storage.purge({ ...params, keepNewest: 1 }), 2, 'runs removed with one of the jobs to keep')
    assertEqual(await kit.storage.purge(params), 1, 'runs removed of the two jobs')
    const rest = await kit.storage.getRuns({})
    assertEqual(
      rest.map(({ jobName }) => jobName),
      ['z'],
      'jobs of the runs left',
    )
  },

  'of several jobs and endings those go first that ended first': async (kit) => {
    const ids: string[] = []
    for (const [jobName, ending] of [
      ['x', 'fail'],
      ['y', 'complete'],
      ['x', 'complete'],
      ['z', 'fail'],
      ['y', 'fail'],
      ['x', 'fail'],
    ] as const) {
      const holder = await kit.start({ jobName })
      await holder.leave(ending)
      ids.push(holder.id)
    }
    const leftOver = (...numbers: readonly number[]) => numbers.map((number) => ids[number] ?? '').sort()
    const params = { ...ALL, jobNames: ['y', 'x'], limit: 2 }
    assertEqual(await kit.storage.purge(params), 2, 'runs removed')
    assertEqual(await left(kit), leftOver(2, 3, 4, 5), 'runs left')
    assertEqual(await kit.storage.purge({ ...params, keepNewest: 2 }), 1, 'runs removed beyond the two to keep')
    assertEqual(await left(kit), leftOver(3, 4, 5), 'runs left with the two to keep')
    const failed = { ...params, statuses: ['failed'] as const, keepNewest: 1 }
    assertEqual(await kit.storage.purge({ ...failed, before: FUTURE }), 1, 'failed runs removed beyond the one to keep')
    assertEqual(await left(kit), leftOver(3, 5), 'runs left with the failed one to keep')
  },

  'no more than the limit at once': async (kit) => {
    await endedRuns(kit, 5)
    const counts = [
      await kit.storage.purge({ ...ALL, limit: 2 }),
      await kit.storage.purge({ ...ALL, limit: 2 }),
      await kit.storage.purge({ ...ALL, limit: 2 }),
    ]
    assertEqual(counts, [2, 2, 1], 'runs removed in turn')
  },

  'keepNewest leaves that many, counting all that match': async (kit) => {
    await endedRuns(kit, 5)
    const waiting = await kit.enqueue()
    assertEqual(await kit.storage.purge({ ...ALL, keepNewest: 7 }), 0, 'runs removed with more to keep than there are')
    assertEqual(await kit.storage.purge({ ...ALL, keepNewest: 2 }), 3, 'runs removed')
    assertEqual((await left(kit)).length, 3, 'runs left')
    assertEqual(await kit.storage.purge({ ...ALL, keepNewest: 0 }), 2, 'runs removed without any to keep')
    assertEqual(await left(kit), [waiting.id], 'runs left in the end')
  },

  'a purged key is free': async (kit) => {
    const holder = await kit.start({ jobName: 'j', idempotencyKey: 'k' })
    await holder.leave('complete')
    await kit.storage.purge(ALL)
    await kit.enqueue({ jobName: 'j', idempotencyKey: 'k' })
  },

  'a child stays as long as the run that created it has not ended': async (kit) => {
    const parent = await kit.start()
    const child = await kit.start({ parentRunId: parent.id })
    await child.leave('complete')
    const other = await kit.start()
    await other.leave('complete')
    assertEqual(await kit.storage.purge({ ...ALL, before: FUTURE }), 1, 'runs removed while the parent runs')
    assertEqual(await left(kit), [parent.id, child.id].sort(), 'runs left while the parent runs')
    await parent.leave('suspend')
    assertEqual(await kit.storage.purge(ALL), 0, 'runs removed while the parent waits')
    const again = await kit.order('cancel', parent.id)
    assertEqual(again.status, 'cancelled', 'status of the parent')
    assertEqual(await kit.storage.purge(ALL), 2, 'runs removed after the end of the parent')
  },

  'a child whose parent goes on again stays': async (kit) => {
    const parent = await kit.start()
    const child = await kit.start({ parentRunId: parent.id })
    await child.leave('complete')
    await parent.leave('fail')
    await kit.order('retry', parent.id)
    assertEqual(await kit.storage.purge(ALL), 0, 'runs removed')
  },

  'a child stays as long as one of those that wait for it has not ended': async (kit) => {
    const [first, second] = [await kit.start(), await kit.start()]
    const child = (parent: Holder) => newRun({ jobName: 'shared', idempotencyKey: 'k', parentRunId: parent.id })
    const {
      children: [id = ''],
    } = await first.commit({ steps: [stepWrite({ child: child(first) })] })
    const held = await kit.hold({ jobs: ['shared'] })
    await held.leave('complete')
    await second.commit({ steps: [stepWrite({ child: child(second) })] })
    await first.leave('complete')
    assertEqual(await kit.storage.purge(ALL), 1, 'runs removed while the second runs')
    assertEqual(await left(kit), [id, second.id].sort(), 'runs left')
    await second.leave('complete')
    assertEqual(await kit.storage.purge(ALL), 2, 'runs removed after the end of the second')
  },

  'a child whose parent is gone goes': async (kit) => {
    const child = await kit.start({ parentRunId: 'nobody' })
    await child.leave('complete')
    assertEqual(await kit.storage.purge(ALL), 1, 'runs removed')
  },

  'children that stay count among the newest to keep, and are not in the way of the rest': async (kit) => {
    const parent = await kit.start()
    const children: string[] = []
    for (let index = 0; index < 3; index++) {
      const child = await kit.start({ parentRunId: parent.id })
      await child.leave('complete')
      children.push(child.id)
    }
    const [, , third, fourth] = await endedRuns(kit, 4)
    assertEqual(await kit.storage.purge({ ...ALL, keepNewest: 2, limit: 1 }), 1, 'runs removed at most one')
    assertEqual(await kit.storage.purge({ ...ALL, keepNewest: 2 }), 1, 'runs removed')
    assertEqual(await left(kit), [parent.id, ...children, third ?? '', fourth ?? ''].sort(), 'runs left')
  },
})
