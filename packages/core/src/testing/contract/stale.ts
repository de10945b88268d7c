import type { RunCommit } from '../../port'
import { assertEqual } from '../assert'
import { newLog, OUTCOME_KINDS, type OutcomeKind, outcomeOf, stepWrite, template } from './builders'
import { casesOf, type ContractCase } from './contract-case'
import type { Holder } from './holder'
import type { Kit } from './kit'

type Write = OutcomeKind | 'commit'

const WRITES: readonly Write[] = ['commit', ...OUTCOME_KINDS]

/** Something of everything a commit can write, so that whatever slips through is seen. */
function fullCommit(holder: Holder, write: Write): RunCommit {
  const events = [template('run:end')]
  return holder.next({
    currentStepIndex: 9,
    progress: { current: 9 },
    steps: [stepWrite({ name: 'stale', child: null })],
    logs: [newLog()],
    events: [template('step:complete')],
    outcome: write === 'commit' ? null : { ...outcomeOf(write), events, eventsIfCancelled: events },
  })
}

async function mustLose(kit: Kit, commit: RunCommit, why: string): Promise<void> {
  const { runId } = commit.lease
  const before = await kit.snapshot(runId)
  assertEqual(await kit.storage.commit([commit]), [{ kept: false }], `answer to a commit ${why}`)
  assertEqual(await kit.snapshot(runId), before, `the run after a commit ${why}`)
}

async function checkLease(kit: Kit, write: Write): Promise<void> {
  const holder = await kit.start({ jobName: 'job' })
  const commit = fullCommit(holder, write)
  const { lease } = holder
  await mustLose(kit, { ...commit, lease: { ...lease, epoch: lease.epoch + 1 } }, 'with a later epoch')
  await mustLose(kit, { ...commit, lease: { ...lease, epoch: lease.epoch - 1 } }, 'with an earlier epoch')
  await mustLose(kit, { ...commit, lease: { ...lease, token: 'other' } }, 'with the token of another claim')
  await mustLose(kit, { ...commit, lease: { ...lease, leaderEpoch: 7 } }, 'with a leader epoch')
  await kit.recover({ deadWorkerId: 'worker-1' })
  await mustLose(kit, commit, 'after recovery')
  const next = await kit.hold()
  await mustLose(kit, commit, 'after the next claim')
  await mustLose(kit, { ...commit, lease: { ...lease, token: next.lease.token } }, 'with the token of the next claim')
  await mustLose(kit, { ...commit, lease: { ...lease, runId: '01JNONE0000000000000000000' } }, 'of an unknown run')
}

async function checkCommitNo(kit: Kit, write: Write): Promise<void> {
  const holder = await kit.start()
  await mustLose(kit, { ...fullCommit(holder, write), commitNo: 2 }, 'that skips the first')
  await holder.commit({ steps: [stepWrite({ name: 'one' })] })
  await holder.commit({ steps: [stepWrite({ name: 'two' })] })
  await mustLose(kit, { ...fullCommit(holder, write), commitNo: 1 }, 'that comes two commits late')
  await mustLose(kit, { ...fullCommit(holder, write), commitNo: 4 }, 'that skips one')
}

async function checkStatus(kit: Kit, write: Write): Promise<void> {
  for (const kind of OUTCOME_KINDS) {
    const holder = await kit.start()
    await holder.leave(kind)
    await mustLose(kit, fullCommit(holder, write), `after ${kind}`)
  }
  const cancelled = await kit.start()
  await kit.order('cancel', cancelled.id)
  await cancelled.leave('complete')
  await mustLose(kit, fullCommit(cancelled, write), 'after cancel')
}

export const STALE_CASES: readonly ContractCase[] = WRITES.flatMap((write) =>
  casesOf('required', 'stale holder', {
    [`${write} under another lease leaves nothing`]: (kit) => checkLease(kit, write),
    [`${write} out of order leaves nothing`]: (kit) => checkCommitNo(kit, write),
    [`${write} after the run was left leaves nothing`]: (kit) => checkStatus(kit, write),
  }),
)
