import type { PurgeParams } from '../storage'
import type { Memory } from './memory'
import type { RunEntry } from './run-entry'

/** The oldest go first. */
export function purge(memory: Memory, params: PurgeParams): number {
  const ended = [...memory.table.all()].filter((entry) => isInScope(memory, entry, params)).sort(byEnd)
  const old = ended
    .slice(0, Math.max(0, ended.length - (params.keepNewest ?? 0)))
    .filter((entry) => isOldEnough(memory, entry, params))
  const purged = old.slice(0, params.limit)
  for (const entry of purged) memory.table.remove(entry)
  return purged.length
}

function isInScope({ rules }: Memory, { record }: RunEntry, { statuses, tenant, jobNames }: PurgeParams): boolean {
  return (
    statuses.includes(record.status) &&
    rules.allowsFrom('remove', record.status) &&
    (tenant === undefined || record.tenant === tenant) &&
    (jobNames === undefined || jobNames.includes(record.jobName))
  )
}

function isOldEnough({ clock }: Memory, { record }: RunEntry, { olderThanMs, before }: PurgeParams): boolean {
  const finishedAt = record.finishedAt ?? ''
  return (
    (olderThanMs === undefined || finishedAt < clock.in(-olderThanMs)) && (before === undefined || finishedAt < before)
  )
}

function byEnd({ record: a }: RunEntry, { record: b }: RunEntry): number {
  const aKey = `${a.finishedAt} ${a.id}`
  const bKey = `${b.finishedAt} ${b.id}`
  return aKey < bKey ? -1 : aKey > bKey ? 1 : 0
}
