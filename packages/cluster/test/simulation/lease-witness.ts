import type { Lease, RecoverParams, RunCommit, RunRecord } from '@coji/durably-core/storage'

/** A run before and after a write of its holder, or of whoever takes it from the holder. */
interface Held {
  readonly name: string
  readonly args: readonly unknown[]
  readonly was: RunRecord
  readonly nowMs: number
}

/** What is written under a lease has to show all of it, and nobody takes a run whose lease has not run out. */
export function judgeLease(wrong: string[], held: Held): void {
  if (held.name === 'commit') judgeCommit(wrong, held)
  if (held.name === 'renew' && !(held.args[0] as readonly Lease[]).some((lease) => shows(lease, held.was))) {
    wrong.push(`run ${held.was.id} was renewed under a lease that is not its own`)
  }
  if (held.name === 'recover') judgeRecovery(wrong, held)
}

/** A silent worker has kept its run for longer than most may. */
export function isContinued({ name, was, nowMs }: Held, usualMs: number): boolean {
  const isBack = name === 'commit' || name === 'renew'
  return isBack && Date.parse(was.leaseUntil ?? '') > nowMs && nowMs - Date.parse(was.heartbeatAt ?? '') > usualMs
}

function judgeCommit(wrong: string[], { args, was }: Held): void {
  const own = (args[0] as readonly RunCommit[]).filter(({ lease }) => shows(lease, was))
  if (own.length === 0) wrong.push(`run ${was.id} got a commit under a lease that is not its own`)
  else if (!own.some(({ commitNo }) => commitNo === was.commitNo + 1)) {
    wrong.push(`run ${was.id} got commit ${own.map(({ commitNo }) => commitNo)} behind ${was.commitNo}`)
  }
}

function judgeRecovery(wrong: string[], { args, was, nowMs }: Held): void {
  const { deadWorkerId, held } = args[0] as RecoverParams
  const isOver = deadWorkerId === null ? Date.parse(was.leaseUntil ?? '') <= nowMs : was.ownerId === deadWorkerId
  if (!isOver) wrong.push(`run ${was.id} was recovered before its lease was over`)
  if (held.includes(was.id)) wrong.push(`run ${was.id} was recovered by its own holder`)
}

/** Who lost a run and got it again sends both leases until it has heard that the old one is lost. */
function shows({ runId, epoch, token, leaderEpoch }: Lease, was: RunRecord): boolean {
  return runId === was.id && epoch === was.leaseEpoch && token === was.claimToken && leaderEpoch === was.leaderEpoch
}
