import type { Instant, NewGathered, Release, RipeGroup, RipeGroups } from '../port'
import type { Clock } from './clock'

interface Member extends NewGathered {
  readonly id: string
  readonly tenant: string
  readonly payload: string | null
  readonly dueAt: Instant
}

/** Messages that wait for others, in the order of their delivery. */
export class GatheredTable {
  readonly #members = new Map<string, Member>()

  add(member: Omit<Member, 'dueAt'>, clock: Clock): void {
    this.#members.set(member.id, { ...member, dueAt: clock.in(member.waitMs) })
  }

  ripe(limit: number, clock: Clock): RipeGroups {
    const groups = new Map<string, Member[]>()
    for (const member of this.#members.values()) {
      const name = JSON.stringify([member.jobName, member.tenant, member.key])
      groups.set(name, [...(groups.get(name) ?? []), member])
    }
    const all = [...groups.values()]
    const isRipe = (members: readonly Member[]) => isFull(members) || dueAtOf(members) <= clock.now()
    const waits = all.filter((members) => !isRipe(members)).map((members) => clock.until(dueAtOf(members)))
    return {
      groups: all.filter(isRipe).slice(0, limit).map(groupOf),
      nextInMs: waits.length === 0 ? null : Math.min(...waits),
    }
  }

  /** Whether all of them were there. */
  take({ members }: Release): boolean {
    const isThere = members.every((id) => this.#members.has(id))
    if (isThere) for (const id of members) this.#members.delete(id)
    return isThere
  }
}

function isFull([first, ...others]: readonly Member[]): boolean {
  return first?.mode === 'all' && others.length + 1 >= first.max
}

function dueAtOf(members: readonly Member[]): Instant {
  const instants = members.map(({ dueAt }) => dueAt).sort()
  return (members[0]?.mode === 'all' ? instants[0] : instants.at(-1)) ?? ''
}

function groupOf(all: readonly Member[]): RipeGroup {
  const { jobName, tenant, key, mode, max } = all[0] as Member
  const members = mode === 'all' ? all.slice(0, max) : all
  return { jobName, tenant, key, mode, members: members.map(({ id, payload }) => ({ id, payload })) }
}
