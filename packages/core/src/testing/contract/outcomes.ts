import type { RunRecord } from '../../port'
import { isEnded } from '../../base'
import { assertEqual, assertMatches } from '../assert'
import { DETAIL, FAR_MS, OUTCOME_KINDS, type OutcomeKind, outcomeOf, stepWrite, waitingStep } from './builders'
import { casesOf, type ContractCase } from './contract-case'
import { assertApart, assertInstant } from './instants'
import type { Kit } from './kit'

/** How the run looks after each way out of `running`. */
const AFTER: { readonly [K in OutcomeKind]: Partial<RunRecord> } = {
  complete: { status: 'completed', output: '{"ok":true}', error: null, errorDetail: null },
  fail: { status: 'failed', output: null, error: 'broken', errorDetail: DETAIL },
  timeOut: { status: 'timed_out', output: null, error: 'too slow', errorDetail: DETAIL },
  cancelled: { status: 'cancelled', output: null },
  retryLater: { status: 'pending', attempt: 2, waitingFor: { kind: 'retry' }, error: 'not yet', errorDetail: DETAIL },
  suspend: { status: 'pending', waitingFor: { kind: 'steps', steps: ['nap'] }, availableAt: null },
  release: { status: 'pending', waitingFor: null, error: null },
  park: { status: 'pending', waitingFor: { kind: 'unpark', reason: 'code changed' }, availableAt: null },
}

const LEFT = { ownerId: null, claimToken: null, leaseUntil: null, leaseEpoch: 1, commitNo: 1, crashCount: 0 } as const

async function checkLeaving(kit: Kit, kind: OutcomeKind): Promise<void> {
  const holder = await kit.start({ timeoutMs: 2 * FAR_MS })
  const answer = await holder.commit({ steps: [stepWrite({ name: 'last' })], outcome: outcomeOf(kind) })
  const run = await kit.run(holder.id)
  assertMatches(run, { attempt: 1, ...LEFT, ...AFTER[kind], cancelRequestedAt: null }, 'the run')
  if (kind !== 'suspend') assertMatches(answer, { status: run.status, cancelRequested: false }, 'the answer')
  const { startedAt, deadlineAt } = holder.run
  assertMatches(run, { startedAt, deadlineAt }, 'the run')
  assertEqual(run.finishedAt !== null, isEnded(run.status), 'whether finishedAt is set')
  assertEqual((await kit.storage.getSteps(holder.id)).length, 1, 'number of step rows')
}

/** Suspended without a deadline: `availableAt` depends on the waits alone. */
async function checkSuspending(kit: Kit): Promise<void> {
  const holder = await kit.start()
  const run = await holder.leave('suspend')
  assertMatches(run, { ...LEFT, ...AFTER.suspend, finishedAt: null }, 'the run')
}

async function checkCancelledInstead(kit: Kit, kind: OutcomeKind): Promise<void> {
  const holder = await kit.start({ holdKeyWhileWaiting: true, concurrencyKey: 'key' })
  const asked = await kit.order('cancel', holder.id)
  assertMatches(asked, { status: 'running', claimToken: holder.lease.token }, 'the run asked to cancel')
  const answer = await holder.commit({ steps: [stepWrite({ name: 'last' })], outcome: outcomeOf(kind) })
  assertMatches(answer, { kept: true, status: 'cancelled', cancelRequested: true }, 'the answer')
  const run = await kit.run(holder.id)
  assertMatches(run, { ...LEFT, status: 'cancelled', output: null, attempt: 1, waitingFor: null }, 'the run')
  assertMatches(run, { concurrencySlot: null, cancelRequestedAt: asked.cancelRequestedAt }, 'the run')
  assertInstant(run.finishedAt, 'finishedAt')
  assertEqual((await kit.storage.getSteps(holder.id)).length, 1, 'number of step rows')
  assertEqual(await kit.claim({ jobs: [run.jobName] }), [], 'runs claimed afterwards')
}

const BY_KIND: readonly ContractCase[] = OUTCOME_KINDS.flatMap((kind) =>
  casesOf('required', 'leaving', {
    [`${kind} writes its status and gives up the lease`]: (kit) =>
      kind === 'suspend' ? checkSuspending(kit) : checkLeaving(kit, kind),
    [`${kind} becomes cancelled when that was asked for`]: (kit) => checkCancelledInstead(kit, kind),
  }),
)

export const OUTCOME_CASES = [
  ...BY_KIND,
  ...casesOf('required', 'leaving', {
    'complete without an output': async (kit) => {
      const holder = await kit.start()
      assertMatches(await holder.leave('complete', { output: null }), { status: 'completed', output: null }, 'the run')
    },

    'complete clears the error of the attempt before': async (kit) => {
      const first = await kit.start({ jobName: 'job' })
      await first.leave('retryLater', { delayMs: -1 })
      const second = await kit.hold()
      assertMatches(second.run, { attempt: 2, error: 'not yet', waitingFor: null }, 'the second attempt')
      const run = await second.leave('complete')
      assertMatches(run, { status: 'completed', attempt: 2, error: null, errorDetail: null }, 'the run')
    },

    'retryLater waits for its delay': async (kit) => {
      const holder = await kit.start({ jobName: 'job' })
      const run = await holder.leave('retryLater', { delayMs: FAR_MS })
      assertApart(run.updatedAt, run.availableAt, FAR_MS)
      assertEqual(await kit.claim(), [], 'runs claimed')
    },

    'retryLater waits no longer than the deadline': async (kit) => {
      const holder = await kit.start({ timeoutMs: FAR_MS })
      const run = await holder.leave('retryLater', { delayMs: 2 * FAR_MS })
      assertMatches(run, { availableAt: holder.run.deadlineAt }, 'the run')
    },

    'release makes it due at once, in its old place': async (kit) => {
      const holder = await kit.start({ jobName: 'job', start: { afterMs: -FAR_MS } })
      const run = await holder.leave('release')
      assertMatches(run, { availableAt: holder.run.createdAt, attempt: 1, crashCount: 0 }, 'the run')
      assertEqual(await kit.claimedIds(), [run.id], 'ids claimed')
    },

    'suspend waits for the earliest of the waiting steps': async (kit) => {
      const holder = await kit.start()
      const [soon, late] = ['2098-01-01T00:00:00.000Z', '2099-01-01T00:00:00.000Z']
      await holder.commit({ steps: [waitingStep({ name: 'soon', due: { at: soon } })] })
      const steps = [waitingStep({ name: 'late', due: { at: late } }), waitingStep({ name: 'never', due: null })]
      const run = await holder.leave('suspend', { steps: ['soon', 'late', 'never'] }, { steps })
      assertMatches(run, { availableAt: soon }, 'the run')
    },

    'suspend does not wait for steps that the job no longer asks for': async (kit) => {
      const holder = await kit.start()
      await holder.commit({ steps: [waitingStep({ name: 'left', due: { inMs: -1000 } })] })
      const [other, nap] = ['other', 'nap'].map((name) =>
        waitingStep({ name, due: { at: '2099-01-01T00:00:00.000Z' } }),
      )
      if (other === undefined || nap === undefined) throw new Error('There should be two steps.')
      const run = await holder.leave('suspend', { steps: ['nap'] }, { steps: [{ ...other, due: { inMs: 1000 } }, nap] })
      assertMatches(run, { availableAt: '2099-01-01T00:00:00.000Z' }, 'the run')
    },

    'suspend does not wait for steps that are over': async (kit) => {
      const holder = await kit.start()
      const nap = waitingStep({ name: 'nap', due: { at: '2098-01-01T00:00:00.000Z' } })
      await holder.commit({ steps: [nap] })
      const doze = waitingStep({ name: 'doze', due: { at: '2099-01-01T00:00:00.000Z' } })
      const steps = [{ ...nap, status: 'completed' } as const, doze]
      const run = await holder.leave('suspend', { steps: ['nap', 'doze'] }, { steps })
      assertMatches(run, { availableAt: '2099-01-01T00:00:00.000Z' }, 'the run')
    },

    'suspend wakes for the deadline at the latest': async (kit) => {
      const holder = await kit.start({ timeoutMs: FAR_MS })
      const steps = [waitingStep({ name: 'nap', due: { at: '2099-01-01T00:00:00.000Z' } })]
      const run = await holder.leave('suspend', {}, { steps })
      assertMatches(run, { availableAt: holder.run.deadlineAt }, 'the run')
      const other = await kit.start({ timeoutMs: FAR_MS })
      assertMatches(await other.leave('suspend'), { availableAt: other.run.deadlineAt }, 'the run without an instant')
    },

    'a suspended run is claimed once its wait is due': async (kit) => {
      const holder = await kit.start({ jobName: 'job' })
      await holder.leave('suspend', {}, { steps: [waitingStep({ name: 'nap', due: { inMs: -1000 } })] })
      const again = await kit.hold()
      assertMatches(again.run, { id: holder.id, attempt: 1, leaseEpoch: 2, crashCount: 0 }, 'the run that goes on')
    },
  }),
]
