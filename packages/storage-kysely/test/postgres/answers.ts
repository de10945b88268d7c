import type { Write } from './accepted-writes'
import { OF_HOLDER, tells, type World } from './operations'

interface Answer {
  readonly world: World
  readonly name: string
  /** How often the operation says that it was accepted. */
  readonly count: number
}

/** By the tag of the operation. */
export type Answers = Map<string, Answer>

type Writes = ReadonlyMap<string, readonly Write[]>

/** Who is told that it was accepted was, once, under the lease it showed; who is told that it was not, was not. */
export function wrongAnswers(answers: Answers, writes: Writes): string[] {
  const events = new Map<string, Write[]>()
  for (const write of [...writes.values()].flat()) {
    const type = String(write.after?.['event_type'])
    if (write.kind === 'event' && type.includes(':')) events.set(type, [...(events.get(type) ?? []), write])
  }
  const told = [...answers].flatMap(([tag, { name, count }]) => (tells(name) ? [[tag, count] as const] : []))
  const counts = new Map(told)
  return [
    ...[...new Set([...counts.keys(), ...events.keys()])]
      .filter((tag) => counts.get(tag) !== events.get(tag)?.length)
      .map((tag) => `${tag}: answered ${counts.get(tag) ?? 0}, written ${events.get(tag)?.length ?? 0}`),
    ...[...answers].flatMap(([tag, answer]) => staleWrites(tag, answer, { writes, events })),
    ...wrongRenewals(answers, writes),
  ]
}

interface Facts {
  readonly writes: Writes
  readonly events: ReadonlyMap<string, readonly Write[]>
}

/** What was accepted from somebody who is not the holder, or not any more. */
function staleWrites(tag: string, { name, world }: Answer, { writes, events }: Facts): string[] {
  const [, ofChild] = /^child (.+)$/.exec(name) ?? []
  const { lease, runId } = (ofChild === undefined ? world : world.child) ?? world
  if (!((ofChild ?? name) in OF_HOLDER)) return []
  return (events.get(tag) ?? []).flatMap(({ xid }) => {
    const change = (writes.get(runId) ?? []).find((write) => write.xid === xid && write.kind === 'run')
    return isUnder(lease, change) ? [] : [`${tag}: accepted without the lease`]
  })
}

function isUnder({ epoch, token }: World['lease'], write: Write | undefined): boolean {
  return write?.before?.['lease_epoch'] === epoch && write.before['claim_token'] === token
}

const RENEWED_ALONE = ['lease_epoch', 'claim_token', 'commit_no', 'wakes', 'cancel_requested_at', 'status'] as const

/**
 * A renewal passes over a run that somebody has locked, and tells of it as it was: then the lease must have been held
 * until one of the sessions ended it, at most. What it does write, it writes under its lease.
 */
function wrongRenewals(answers: Answers, writes: Writes): string[] {
  const renewals = [...answers.values()].filter(({ name }) => name === 'renew' || name === 'renew both')
  return renewals.flatMap(({ world, count }) => {
    const held = [world, ...(world.child === null ? [] : [world.child])]
    const written = held.flatMap(({ runId, lease }) =>
      (writes.get(runId) ?? []).filter(isRenewal).map((write) => isUnder(lease, write)),
    )
    const lookedAt = held.filter(({ runId, lease }) => (writes.get(runId) ?? []).some((write) => isUnder(lease, write)))
    if (written.includes(false)) return [`${world.name}: renewed without the lease`]
    return written.length + lookedAt.length >= count ? [] : [`${world.name}: told of a lease that was not held`]
  })
}

function isRenewal({ kind, before, after }: Write): boolean {
  if (kind !== 'run' || before === null || after === null) return false
  return RENEWED_ALONE.every((name) => before[name] === after[name]) && before['lease_until'] !== after['lease_until']
}
