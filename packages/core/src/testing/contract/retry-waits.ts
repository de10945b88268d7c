import type { RunRecord } from '../../port'
import { assertEqual } from '../assert'
import { FAR_MS, newRun, NO_COUNTS } from './builders'
import { casesOf } from './contract-case'
import type { Holder } from './holder'
import type { Kit } from './kit'

function assertWaits(kit: Kit, run: RunRecord, when: string): Promise<void> {
  return assertReads(kit, run, { waits: true, when })
}

function assertWaitsNot(kit: Kit, run: RunRecord, when: string): Promise<void> {
  return assertReads(kit, run, { waits: false, when })
}

interface Expected {
  readonly waits: boolean
  readonly when: string
}

/** Both reads must agree about the run, the only one of its job. */
async function assertReads(kit: Kit, run: RunRecord, { waits, when }: Expected): Promise<void> {
  const { id, jobName, status, waitingFor } = run
  const query = { jobNames: [jobName] }
  for (const waitsForRetry of [true, false]) {
    const ids = (await kit.storage.getRuns({ ...query, waitsForRetry })).map((run) => run.id)
    assertEqual(ids, waitsForRetry === waits ? [id] : [], `ids with waitsForRetry ${waitsForRetry} ${when}`)
  }
  const parked = Number(waitingFor?.kind === 'unpark')
  const counts = { ...NO_COUNTS, [status]: 1, waitsForRetry: Number(waits), parked }
  assertEqual(await kit.storage.counts(query), counts, `counts ${when}`)
}

/** Failed, and due again already. */
function retryNow(holder: Holder): Promise<RunRecord> {
  return holder.leave('retryLater', { delayMs: -1 })
}

export const RETRY_WAIT_CASES = casesOf('required', 'waitsForRetry', {
  'begins with the failure, and due ends it no more than not due': async (kit) => {
    const late = await kit.start()
    await assertWaitsNot(kit, late.run, 'while it runs')
    await assertWaits(kit, await late.leave('retryLater', { delayMs: FAR_MS }), 'before it is due')
    await assertWaits(kit, await retryNow(await kit.start()), 'once it is due')
  },

  'ends with the claim, and does not come back by itself': async (kit) => {
    const released = await kit.start()
    const { jobName } = await retryNow(released)
    const again = await kit.hold({ jobs: [jobName] })
    await assertWaitsNot(kit, again.run, 'after the claim')
    await assertWaitsNot(kit, await again.leave('release'), 'after a release')
    const third = await kit.hold({ jobs: [jobName] })
    await assertWaits(kit, await retryNow(third), 'after the next failure')
    await assertWaitsNot(kit, await (await kit.hold({ jobs: [jobName] })).leave('complete'), 'after its end')
  },

  'is over when the holder was lost': async (kit) => {
    const { jobName, id } = await retryNow(await kit.start())
    await kit.hold({ jobs: [jobName], leaseMs: -1000 })
    await kit.recover()
    await assertWaitsNot(kit, await kit.run(id), 'after the recovery')
  },

  'is over after a command': async (kit) => {
    const parked = await retryNow(await kit.start())
    await assertWaitsNot(kit, await kit.order('park', parked.id), 'while it is parked')
    await assertWaitsNot(kit, await kit.order('unpark', parked.id), 'put back')
    const { id } = await retryNow(await kit.start())
    await assertWaitsNot(kit, await kit.order('cancel', id), 'cancelled')
    await assertWaitsNot(kit, await kit.order('retry', id), 'retried by hand')
    await kit.order('cancel', id)
    await kit.order('remove', id)
    assertEqual(await kit.storage.counts({}), { ...NO_COUNTS, pending: 1 }, 'counts once that one is removed')
  },

  'is no other wait': async (kit) => {
    await assertWaitsNot(kit, await kit.enqueue({ jobName: 'later', start: { afterMs: FAR_MS } }), 'with a delay')
    for (const kind of ['suspend', 'park', 'fail'] as const) {
      await assertWaitsNot(kit, await (await kit.start()).leave(kind), `after ${kind}`)
    }
  },

  'is counted beside the status, and narrows with the other filters': async (kit) => {
    const job = { jobName: 'j', tenant: 't' }
    const waiting = await retryNow(await kit.start(job))
    const other = newRun(job)
    await kit.storage.enqueue([other, newRun({ jobName: 'j' })])
    const query = { jobNames: ['i', 'j'], tenant: 't' }
    for (const [waitsForRetry, id] of [
      [true, waiting.id],
      [false, other.id],
    ] as const) {
      const runs = await kit.storage.getRuns({ ...query, waitsForRetry, statuses: ['pending'] })
      assertEqual(
        runs.map((run) => run.id),
        [id],
        `ids with waitsForRetry ${waitsForRetry}`,
      )
    }
    assertEqual(await kit.storage.counts(query), { ...NO_COUNTS, pending: 2, waitsForRetry: 1 }, 'counts')
    assertEqual(await kit.storage.counts({ ...query, tenant: 'u' }), NO_COUNTS, 'counts of another tenant')
    assertEqual(await kit.storage.counts({}), { ...NO_COUNTS, pending: 3, waitsForRetry: 1 }, 'counts of all')
  },
})
