import type { PurgeParams } from '../port'
import type { Memory } from './memory'
import type { RunEntry } from './run-entry'

/** The oldest go first. */
export function purge(memory: Memory, params: PurgeParams): number {
  const { table } = memory
  const purged: RunEntry[] = []
  const spareCount = countInScope(memory, params) - (params.keepNewest ?? 0)
  const mostOfAll = Math.min(spareCount, params.limit)
  if (mostOfAll <= 0) return 0
  let spare = spareCount
  for (const entry of table.ended.oldestFirst()) {
    if (purged.length >= mostOfAll || spare <= 0 || !isOldEnough(memory, entry, params)) break
    if (!isInScope(memory, entry, params)) continue
    spare -= 1
    if (memory.rules.allows('purge', 'unneeded', () => !isNeeded(memory, entry))) purged.push(entry)
  }
  for (const entry of purged) table.remove(entry)
  if (params.audit !== undefined && purged.length > 0) {
    const before = { runs: purged.map(({ record }) => record.id) }
    const { tenant = '' } = params
    memory.audit.add(params.audit, { targetKind: 'runs', target: '', tenant, before, after: null })
  }
  return purged.length
}

/** A run that waits for it, and has not ended, may still ask for its output. */
function isNeeded({ table }: Memory, entry: RunEntry): boolean {
  return table.keeperOf(entry) !== undefined
}

/** Without looking at them. */
function countInScope({ table, rules }: Memory, params: PurgeParams): number {
  const counts = table.counts.sum(params)
  const statuses = new Set(params.statuses.filter((status) => rules.allowsFrom('purge', status)))
  return [...statuses].reduce((sum, status) => sum + counts[status], 0)
}

function isInScope({ rules }: Memory, { record }: RunEntry, { statuses, tenant, jobNames }: PurgeParams): boolean {
  return (
    statuses.includes(record.status) &&
    rules.allowsFrom('purge', record.status) &&
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
