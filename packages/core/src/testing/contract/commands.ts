import type { RunCommand, RunRecord } from '../../port'
import { assert, assertEqual, assertMatches } from '../assert'
import { FAR_MS, newId, newRun, OUTCOME_KINDS, outcomeOf, stepWrite, waitingStep } from './builders'
import { casesOf } from './contract-case'
import { assertInstant } from './instants'
import type { Kit } from './kit'

type CommandKind = RunCommand['kind']

const KINDS: readonly CommandKind[] = ['cancel', 'retry', 'park', 'unpark', 'failParked', 'remove']
const PARKED = { kind: 'unpark', reason: 'code changed' } as const

/** Runs in every state a run can be in without a cluster, by a name for messages. */
async function runsInAllStates(kit: Kit): Promise<Map<string, RunRecord>> {
  const runs = new Map<string, RunRecord>()
  runs.set('new', await kit.enqueue({ jobName: 'never' }))
  runs.set('running', (await kit.start()).run)
  for (const kind of OUTCOME_KINDS) runs.set(kind, await (await kit.start()).leave(kind))
  return runs
}

/** The states each command is for; everywhere else it must change nothing. */
const ALLOWED: { readonly [K in CommandKind]: readonly string[] } = {
  cancel: ['new', 'running', 'retryLater', 'suspend', 'release', 'park'],
  retry: ['fail', 'timeOut', 'cancelled'],
  park: ['new', 'retryLater', 'suspend', 'release', 'park'],
  unpark: ['park'],
  failParked: ['park'],
  remove: ['complete', 'fail', 'timeOut', 'cancelled'],
}

async function checkStates(kit: Kit, kind: CommandKind): Promise<void> {
  for (const [state, run] of await runsInAllStates(kit)) {
    const before = await kit.snapshot(run.id)
    const answer = await kit.command(kind, run.id)
    if (ALLOWED[kind].includes(state)) {
      assert(answer.applied, `${kind} of a run in state "${state}" should be applied`)
      if (kind !== 'remove') assertEqual(await kit.run(run.id), answer.run, `getRun and the answer (${state})`)
    } else {
      assertEqual(
        answer,
        { applied: false, reason: 'wrong-state', run },
        `answer to ${kind} of a run in state "${state}"`,
      )
      assertEqual(await kit.snapshot(run.id), before, `the run in state "${state}" after ${kind}`)
    }
  }
}

async function checkScope(kit: Kit, kind: CommandKind): Promise<void> {
  const notFound = { applied: false, reason: 'not-found' }
  assertEqual(await kit.command(kind, newId()), notFound, `answer to ${kind} of an unknown run`)
  const run = await kit.enqueue({ tenant: 'acme' })
  const holder = await kit.start({ tenant: 'acme' })
  const parked = await (await kit.start({ tenant: 'acme' })).leave('park')
  const failed = await (await kit.start({ tenant: 'acme' })).leave('fail')
  for (const { id } of [run, holder.run, parked, failed]) {
    const before = await kit.snapshot(id)
    for (const tenant of ['', 'other']) {
      assertEqual(await kit.command(kind, id, { tenant }), notFound, `answer to ${kind} by tenant "${tenant}"`)
    }
    assertEqual(await kit.snapshot(id), before, `the run after ${kind} by another tenant`)
  }
  const target = ALLOWED[kind].includes('new') ? run : ALLOWED[kind].includes('park') ? parked : failed
  assert(
    (await kit.command(kind, target.id, { tenant: 'acme' })).applied,
    `${kind} by its own tenant should be applied`,
  )
}

const BY_KIND = KINDS.flatMap((kind) =>
  casesOf('required', 'command', {
    [`${kind} is for some states and changes nothing in others`]: (kit) => checkStates(kit, kind),
    [`${kind} finds runs of its tenant only`]: (kit) => checkScope(kit, kind),
  }),
)

const EFFECTS = casesOf('required', 'command', {
  'cancel ends a pending run at once': async (kit) => {
    const run = await kit.order('cancel', (await kit.enqueue()).id)
    assertMatches(run, { status: 'cancelled', output: null, waitingFor: null, attempt: 1 }, 'the run')
    assertInstant(run.finishedAt, 'finishedAt')
    assertEqual(await kit.claim(), [], 'runs claimed')
  },

  'cancel ends a waiting run at once': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    await holder.leave('suspend', {}, { steps: [waitingStep({ name: 'nap', due: { inMs: -1 } })] })
    assertMatches(await kit.order('cancel', holder.id), { status: 'cancelled', waitingFor: null }, 'the run')
    assertEqual(await kit.claim(), [], 'runs claimed')
  },

  'cancel of a running run only asks': async (kit) => {
    const holder = await kit.start()
    const run = await kit.order('cancel', holder.id)
    assertMatches(run, { status: 'running', claimToken: holder.lease.token, finishedAt: null }, 'the run')
    assertInstant(run.cancelRequestedAt, 'cancelRequestedAt')
    assert(run.version > holder.run.version, 'version should have grown')
    assertMatches(await holder.commit({ steps: [stepWrite()] }), { status: 'running', cancelRequested: true }, 'commit')
  },

  'cancel of a running run can be asked twice': async (kit) => {
    const holder = await kit.start()
    const first = await kit.order('cancel', holder.id)
    const second = await kit.order('cancel', holder.id)
    assertMatches(second, { status: 'running', cancelRequestedAt: first.cancelRequestedAt }, 'the run')
  },

  'retry puts an ended run back to its place and clears what it came to': async (kit) => {
    const holder = await kit.start({
      jobName: 'job',
      timeoutMs: 1000,
      concurrencyKey: 'key',
      start: { afterMs: -FAR_MS },
    })
    await holder.leave('fail')
    const run = await kit.order('retry', holder.id)
    const cleared = {
      output: null,
      error: null,
      errorDetail: null,
      finishedAt: null,
      startedAt: null,
      deadlineAt: null,
    }
    const counters = { attempt: 2, attemptBase: 1, crashCount: 0, leaseEpoch: 2, cancelRequestedAt: null }
    assertMatches(
      run,
      { status: 'pending', availableAt: run.createdAt, waitingFor: null, ...cleared, ...counters },
      'run',
    )
    const again = await kit.hold()
    assertMatches(again.run, { id: run.id, attempt: 2, leaseEpoch: 3, concurrencySlot: 0 }, 'the claimed run')
    assertInstant(again.run.deadlineAt, 'deadlineAt')
  },

  'retry of a cancelled run forgets that it was to be cancelled': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    await kit.order('cancel', holder.id)
    await holder.leave('complete')
    assertMatches(await kit.order('retry', holder.id), { status: 'pending', cancelRequestedAt: null }, 'the run')
    assertMatches(await (await kit.hold()).leave('complete'), { status: 'completed' }, 'the run in the end')
  },

  'retry after crashes counts them anew': async (kit) => {
    await kit.startExpired({ jobName: 'job' })
    const [run] = await kit.recover({ maxCrashes: 1 })
    assertMatches(await kit.order('retry', run?.id ?? ''), { crashCount: 0, attempt: 2, leaseEpoch: 3 }, 'the run')
  },

  'retry adds to the attempts there were': async (kit) => {
    const first = await kit.start({ jobName: 'job' })
    await first.leave('retryLater', { delayMs: -1000 })
    const second = await kit.hold()
    await second.leave('fail')
    assertMatches(await kit.order('retry', first.id), { attempt: 3, attemptBase: 2 }, 'the run')
  },

  'retry keeps completed steps and drops waiting ones': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    const failed = stepWrite({ name: 'b', status: 'failed', error: 'no', output: null, index: 1 })
    const waiting = waitingStep({ name: 'c', due: { inMs: FAR_MS }, index: 2 })
    await holder.leave('fail', {}, { steps: [stepWrite({ name: 'a', index: 0 }), failed, waiting] })
    await kit.order('retry', holder.id)
    const names = (await kit.storage.getSteps(holder.id)).map(({ name }) => name)
    assertEqual(names, ['a', 'b'], 'names of the steps')
    const again = await kit.hold()
    await again.commit({ steps: [waitingStep({ name: 'c' })] })
  },

  'retry loses the lease of before': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    const commit = holder.next({ outcome: outcomeOf('fail') })
    await holder.send(commit)
    await kit.order('retry', holder.id)
    const before = await kit.snapshot(holder.id)
    assertEqual(await holder.send(commit), { kept: false }, 'answer to the commit sent again')
    assertEqual(await kit.snapshot(holder.id), before, 'the run')
  },

  'of many retries at once one wins': async (kit) => {
    const holder = await kit.start()
    await holder.leave('fail')
    const answers = await Promise.all(Array.from({ length: 8 }, () => kit.command('retry', holder.id)))
    assertEqual(answers.filter(({ applied }) => applied).length, 1, 'retries applied')
    assertMatches(await kit.run(holder.id), { attempt: 2, leaseEpoch: 2 }, 'the run')
  },

  'of cancel and completion at once one wins': async (kit) => {
    for (let round = 0; round < 4; round++) {
      const holder = await kit.start()
      const [cancelled] = await Promise.all([kit.command('cancel', holder.id), holder.leave('complete')])
      const { status } = await kit.run(holder.id)
      assertEqual(status, cancelled.applied ? 'cancelled' : 'completed', 'status')
    }
  },

  'park takes a pending run out of the queue, unpark puts it back': async (kit) => {
    const first = await kit.enqueue()
    const second = await kit.enqueue()
    const parked = await kit.order('park', first.id)
    assertMatches(parked, { status: 'pending', availableAt: null, waitingFor: PARKED }, 'the parked run')
    assertEqual(await kit.claimedIds({ limit: 1 }), [second.id], 'ids claimed while it is parked')
    const back = await kit.order('unpark', first.id)
    assertMatches(back, { status: 'pending', availableAt: first.createdAt, waitingFor: null }, 'the run put back')
    assertEqual(await kit.claimedIds(), [first.id], 'ids claimed afterwards')
  },

  'failParked ends a parked run': async (kit) => {
    const parked = await kit.order('park', (await kit.enqueue()).id)
    const run = await kit.order('failParked', parked.id)
    const error = { error: 'given up', errorDetail: { name: 'GivenUp' } }
    assertMatches(run, { status: 'failed', waitingFor: null, ...error }, 'the run')
    assertInstant(run.finishedAt, 'finishedAt')
  },

  'remove takes the run with all that belongs to it': async (kit) => {
    const holder = await kit.start({ labels: { a: '1' }, idempotencyKey: 'k' })
    await holder.leave('complete', {}, { steps: [stepWrite()] })
    const before = await kit.run(holder.id)
    assertEqual(await kit.order('remove', holder.id), before, 'the run of the answer')
    assertEqual(await kit.storage.getRun(holder.id), null, 'getRun')
    assertEqual(await kit.storage.getSteps(holder.id), [], 'steps')
    assertEqual(await kit.storage.getRuns({ labels: { a: '1' } }), [], 'runs with its label')
    assertMatches(await kit.command('remove', holder.id), { applied: false, reason: 'not-found' }, 'second remove')
    const fresh = await kit.enqueue({ id: holder.id, jobName: 'new' })
    assertMatches(fresh, { status: 'pending', attempt: 1, labels: {} }, 'a new run under its id')
    assertEqual(await kit.storage.getSteps(holder.id), [], 'steps of the new run')
  },

  'a run under a key of an ended and removed one is a new run': async (kit) => {
    const holder = await kit.start({ jobName: 'j', idempotencyKey: 'k' })
    await holder.leave('fail')
    await kit.order('remove', holder.id)
    const [answer] = await kit.storage.enqueue([newRun({ jobName: 'j', idempotencyKey: 'k' })])
    assertEqual(answer?.created, true, 'created')
  },
})

export const COMMAND_CASES = [...BY_KIND, ...EFFECTS]
