import type { RunQuery } from '../../port'
import { assertEqual, assertMatches } from '../assert'
import { newId, newRun, NO_COUNTS, stepWrite } from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

async function found(kit: Kit, query: RunQuery): Promise<string[]> {
  return (await kit.storage.getRuns(query)).map(({ id }) => id)
}

export const READ_CASES = casesOf('required', 'reads', {
  'migrate can be called again, and at once, and keeps what is there': async (kit) => {
    const run = await kit.enqueue()
    await Promise.all([kit.storage.migrate(), kit.storage.migrate(), kit.storage.migrate()])
    assertEqual(await kit.run(run.id), run, 'the run')
  },

  'what is not there is null or empty': async (kit) => {
    assertEqual(await kit.storage.getRun(newId()), null, 'getRun')
    assertEqual(await kit.storage.getSteps(newId()), [], 'getSteps')
    assertEqual(await kit.storage.getRuns({}), [], 'getRuns')
    assertEqual(await kit.storage.counts({}), NO_COUNTS, 'counts')
    assertEqual(await kit.storage.getRun(''), null, 'getRun of an empty id')
  },

  'a run is read by its tenant only': async (kit) => {
    const holder = await kit.start({ tenant: 'acme' })
    await holder.commit({ steps: [stepWrite()] })
    const run = await kit.run(holder.id)
    assertEqual(await kit.storage.getRun(run.id, { tenant: 'acme' }), run, 'getRun by its tenant')
    assertEqual(await kit.storage.getRun(run.id, {}), run, 'getRun without a tenant')
    for (const tenant of ['', 'other']) {
      assertEqual(await kit.storage.getRun(run.id, { tenant }), null, `getRun by tenant "${tenant}"`)
      assertEqual(await kit.storage.getSteps(run.id, { tenant }), [], `getSteps by tenant "${tenant}"`)
      assertEqual(await kit.storage.getRuns({ tenant }), [], `getRuns by tenant "${tenant}"`)
      assertEqual(await kit.storage.getRuns({ tenant, ids: [run.id] }), [], `getRuns of the id by tenant "${tenant}"`)
      assertEqual(await kit.storage.counts({ tenant }), NO_COUNTS, `counts by tenant "${tenant}"`)
    }
    assertEqual((await kit.storage.getSteps(run.id, { tenant: 'acme' })).length, 1, 'getSteps by its tenant')
  },

  'the tenant without a name is a tenant': async (kit) => {
    const run = await kit.enqueue({ tenant: '' })
    await kit.enqueue({ tenant: 'acme' })
    assertEqual(await found(kit, { tenant: '' }), [run.id], 'ids of the tenant ""')
  },

  'runs come newest first': async (kit) => {
    const one = await kit.enqueue()
    const [two, three] = [newRun({ priority: 9 }), newRun({ start: { at: '2001-01-01T00:00:00.000Z' } })]
    await kit.storage.enqueue([two, three])
    assertEqual(await found(kit, {}), [three.id, two.id, one.id], 'ids')
  },

  'the holders of a concurrency key are found, also while they wait': async (kit) => {
    const key = { concurrencyKey: 'printer', concurrencyLimit: 2, holdKeyWhileWaiting: true }
    const waiting = await kit.start(key)
    await waiting.leave('release')
    const running = await kit.start({ ...key, priority: 1 })
    await kit.enqueue(key)
    await kit.start({ ...key, concurrencyKey: 'other', priority: 1 })
    await kit.start({ ...key, tenant: 'acme', priority: 1 })
    assertEqual(await found(kit, { tenant: '', holdingKey: 'printer' }), [running.id, waiting.id], 'ids')
    assertEqual(await found(kit, { holdingKey: 'nobody' }), [], 'ids of a key that nobody holds')
  },

  'a change does not move a run in the list': async (kit) => {
    const first = await kit.enqueue()
    const second = await kit.enqueue()
    await kit.order('cancel', first.id)
    assertEqual(await found(kit, {}), [second.id, first.id], 'ids')
  },

  'filters narrow the list, all of them together': async (kit) => {
    const parent = newId()
    const [a, b, c] = [
      newRun({ jobName: 'x', tenant: 't', parentRunId: parent }),
      newRun({ jobName: 'y', tenant: 't' }),
      newRun({ jobName: 'x', tenant: 'u' }),
    ]
    await kit.storage.enqueue([a, b, c])
    await kit.order('cancel', c.id)
    assertEqual(await found(kit, { jobNames: ['x'] }), [c.id, a.id], 'ids of a job')
    assertEqual(await found(kit, { jobNames: ['none', 'x', 'y', 'x'] }), [c.id, b.id, a.id], 'ids of two jobs')
    assertEqual(await found(kit, { jobNames: ['none', 'other'] }), [], 'ids of jobs without runs')
    assertEqual(await found(kit, { jobNames: [] }), [], 'ids of no job')
    assertEqual(await found(kit, { tenant: 't' }), [b.id, a.id], 'ids of a tenant')
    assertEqual(await found(kit, { statuses: ['cancelled'] }), [c.id], 'ids of a status')
    assertEqual(await found(kit, { statuses: ['cancelled', 'pending'] }), [c.id, b.id, a.id], 'ids of two states')
    assertEqual(await found(kit, { statuses: [] }), [], 'ids of no status')
    assertEqual(await found(kit, { parentRunId: parent }), [a.id], 'ids of a parent')
    assertEqual(await found(kit, { ids: [c.id, a.id, newId(), a.id] }), [c.id, a.id], 'ids asked for')
    assertEqual(await found(kit, { ids: [] }), [], 'ids of an empty list')
    assertEqual(
      await found(kit, { jobNames: ['x'], tenant: 't', statuses: ['pending'], ids: [a.id, b.id] }),
      [a.id],
      'all',
    )
    assertEqual(await found(kit, { jobNames: ['x'], tenant: 't', statuses: ['cancelled'] }), [], 'ids of none')
  },

  'labels must all match, name and value': async (kit) => {
    const [a, b, c] = [
      newRun({ labels: { team: 'red', 'size.x': 'L "1"' } }),
      newRun({ labels: { team: 'red' } }),
      newRun({ labels: { team: 'blue', 'size.x': 'L "1"' } }),
    ]
    await kit.storage.enqueue([a, b, c])
    assertEqual(await found(kit, { labels: { team: 'red' } }), [b.id, a.id], 'ids of one label')
    assertEqual(await found(kit, { labels: { team: 'red', 'size.x': 'L "1"' } }), [a.id], 'ids of two labels')
    assertEqual(await found(kit, { labels: { team: 'green' } }), [], 'ids of another value')
    assertEqual(await found(kit, { labels: { constructor: 'red' } }), [], 'ids of a name that no run has')
    assertEqual((await found(kit, { labels: {} })).length, 3, 'ids of no label')
    assertMatches(await kit.run(a.id), { labels: { team: 'red', 'size.x': 'L "1"' } }, 'the run')
  },

  'counts follow the runs': async (kit) => {
    await kit.storage.enqueue([newRun({ tenant: 'a' }), newRun({ tenant: 'a', jobName: 'x' }), newRun({ tenant: 'b' })])
    await kit.start({ tenant: 'a', jobName: 'y' })
    for (const kind of ['complete', 'fail', 'timeOut', 'cancelled'] as const) {
      await (await kit.start({ tenant: 'b', jobName: 'y' })).leave(kind)
    }
    const ended = { completed: 1, failed: 1, timed_out: 1, cancelled: 1 }
    assertEqual(await kit.storage.counts({}), { ...NO_COUNTS, ...ended, pending: 3, running: 1 }, 'counts of all')
    assertEqual(
      await kit.storage.counts({ tenant: 'a' }),
      { ...NO_COUNTS, pending: 2, running: 1 },
      'counts of a tenant',
    )
    assertEqual(
      await kit.storage.counts({ jobNames: ['y'] }),
      { ...NO_COUNTS, ...ended, running: 1 },
      'counts of a job',
    )
    const two = await kit.storage.counts({ jobNames: ['x', 'none', 'y', 'x'] })
    assertEqual(two, { ...NO_COUNTS, ...ended, pending: 1, running: 1 }, 'counts of two jobs')
    assertEqual(await kit.storage.counts({ jobNames: [] }), NO_COUNTS, 'counts of no job')
    const both = await kit.storage.counts({ tenant: 'b', jobNames: ['y'] })
    assertEqual(both, { ...NO_COUNTS, ...ended }, 'counts of tenant and job')
    await kit.storage.purge({ statuses: ['failed'], limit: 9 })
    assertMatches(await kit.storage.counts({}), { failed: 0, completed: 1 }, 'counts after a purge')
  },

  'whoever changes an answer changes nothing': async (kit) => {
    const holder = await kit.start({ labels: { a: '1' } })
    const before = structuredClone(await kit.snapshot(holder.id))
    const spoil = (value: object) => {
      try {
        Object.assign(value, { status: 'failed', version: 99, a: '2' })
      } catch {
        // A frozen answer is as good.
      }
    }
    const run = await kit.run(holder.id)
    spoil(run.labels)
    spoil(run)
    spoil(holder.run)
    assertEqual(await kit.snapshot(holder.id), before, 'the run')
  },
})
