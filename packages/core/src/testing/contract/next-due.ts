import { assert, assertEqual, assertMatches } from '../assert'
import { FAR_MS, newRun, waitingStep } from './builders'
import { casesOf } from './contract-case'

const NOTHING = { runInMs: null, leaseInMs: null, unknownJobs: [] }

function assertAbout(ms: number | null, expected: number, what: string): void {
  assert(ms !== null && Math.abs(ms - expected) < 10_000, `${what}: is ${ms}, expected about ${expected}`)
}

export const NEXT_DUE_CASES = casesOf('required', 'next due', {
  'there is nothing in an empty storage': async (kit) => {
    assertEqual(await kit.storage.nextDue(['job']), NOTHING, 'nextDue')
    assertEqual(await kit.storage.nextDue([]), NOTHING, 'nextDue without jobs')
  },

  'a due run is due in 0 ms': async (kit) => {
    await kit.storage.enqueue([newRun({ start: { afterMs: -FAR_MS } }), newRun({ start: { afterMs: FAR_MS } })])
    assertEqual(await kit.storage.nextDue(['job']), { ...NOTHING, runInMs: 0 }, 'nextDue')
  },

  'the earliest of the known jobs counts': async (kit) => {
    await kit.storage.enqueue([
      newRun({ jobName: 'a', start: { afterMs: 3 * FAR_MS }, priority: 9 }),
      newRun({ jobName: 'a', start: { afterMs: 2 * FAR_MS } }),
      newRun({ jobName: 'b', start: { afterMs: FAR_MS } }),
    ])
    assertAbout((await kit.storage.nextDue(['a'])).runInMs, 2 * FAR_MS, 'runInMs of one job')
    assertAbout((await kit.storage.nextDue(['a', 'b'])).runInMs, FAR_MS, 'runInMs of both jobs')
    assertEqual((await kit.storage.nextDue(['c'])).runInMs, null, 'runInMs of another job')
  },

  'due runs of unknown jobs are named, once each': async (kit) => {
    await kit.storage.enqueue([
      newRun({ jobName: 'a' }),
      newRun({ jobName: 'a' }),
      newRun({ jobName: 'b' }),
      newRun({ jobName: 'known' }),
      newRun({ jobName: 'later', start: { afterMs: FAR_MS } }),
    ])
    await kit.start({ jobName: 'running' })
    const { unknownJobs } = await kit.storage.nextDue(['known'])
    assertEqual([...unknownJobs].sort(), ['a', 'b'], 'unknownJobs')
    assertEqual([...(await kit.storage.nextDue(['a', 'b', 'known'])).unknownJobs], [], 'unknownJobs when all are known')
  },

  'runs that wait for something without a time do not count': async (kit) => {
    await kit.order('park', (await kit.enqueue()).id)
    const holder = await kit.start({ jobName: 'job' })
    await holder.leave('suspend')
    const ended = await kit.start({ jobName: 'job' })
    await ended.leave('complete')
    assertEqual(await kit.storage.nextDue(['job']), NOTHING, 'nextDue')
  },

  'a wait with a time counts': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    await holder.leave('suspend', {}, { steps: [waitingStep({ name: 'nap', due: { inMs: FAR_MS } })] })
    assertAbout((await kit.storage.nextDue(['job'])).runInMs, FAR_MS, 'runInMs')
  },

  'a run blocked by its concurrency key counts as due': async (kit) => {
    await kit.start({ jobName: 'job', concurrencyKey: 'key' })
    await kit.enqueue({ concurrencyKey: 'key' })
    assertMatches(await kit.storage.nextDue(['job']), { runInMs: 0 }, 'nextDue')
  },

  'the first lease to run out counts, whatever the job': async (kit) => {
    await kit.start({}, { leaseMs: 2 * FAR_MS })
    const holder = await kit.start({}, { leaseMs: FAR_MS })
    assertAbout((await kit.storage.nextDue([])).leaseInMs, FAR_MS, 'leaseInMs')
    await holder.leave('complete')
    assertAbout((await kit.storage.nextDue([])).leaseInMs, 2 * FAR_MS, 'leaseInMs after the end of that run')
    await kit.startExpired()
    const { leaseInMs } = await kit.storage.nextDue([])
    assert(leaseInMs !== null && leaseInMs <= 0, `leaseInMs with an expired lease: is ${leaseInMs}, expected 0`)
  },
})
