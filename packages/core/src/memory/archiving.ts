import type { ArchivingStorage, EndCursor, LoggedRuns, LogRecord } from '../port'
import type { Operations } from './cluster'
import type { Clock } from './clock'
import type { Memory } from './memory'

interface Stray {
  readonly announcedAt: string
  isGivenUp: boolean
}

/** Names that no run refers to. */
export class Strays {
  readonly #byName = new Map<string, Stray>()

  announce(name: string, { now }: Clock): void {
    if (!this.#byName.has(name)) this.#byName.set(name, { announcedAt: now(), isGivenUp: false })
  }

  /** A run has referred to it, and does so no longer. */
  add(name: string): void {
    this.#byName.set(name, { announcedAt: '', isGivenUp: true })
  }

  isAnnounced(name: string): boolean {
    return this.#byName.get(name)?.isGivenUp === false
  }

  giveUp(until: string, limit: number): readonly string[] {
    for (const stray of this.#byName.values()) if (stray.announcedAt <= until) stray.isGivenUp = true
    const names = [...this.#byName].filter(([, { isGivenUp }]) => isGivenUp).map(([name]) => name)
    return names.sort().slice(0, limit)
  }

  forget(names: readonly string[]): void {
    for (const name of names) this.#byName.delete(name)
  }
}

export function createArchiving(memory: Memory, { read, write }: Operations): ArchivingStorage {
  const { strays, clock } = memory
  return {
    findLogged: (params) => read(() => findLogged(memory, params)),
    announce: (name) => write(() => strays.announce(name, clock)),
    refer: (params) => write(() => refer(memory, params)),
    getUnarchived: (runId, options) => read(() => getUnarchived(memory, runId, options)),
    removeArchived: (params) => write(() => removeArchived(memory, params)),
    giveUp: ({ announcedForMs, limit }) => write(() => strays.giveUp(clock.in(-announcedForMs), limit)),
    forget: (names) => write(() => strays.forget(names)),
  }
}

type FindParams = Parameters<ArchivingStorage['findLogged']>[0]

function findLogged({ table, clock }: Memory, { olderThanMs, after, limit }: FindParams): LoggedRuns {
  const runs: { id: string; version: number }[] = []
  let last: EndCursor | null = null
  let looked = 0
  for (const { record, logs } of table.ended.oldestFirst()) {
    const { id, version, finishedAt } = record
    if (finishedAt === null || finishedAt >= clock.in(-olderThanMs) || looked === limit) break
    if (after !== null && !isAfter({ finishedAt, id }, after)) continue
    looked += 1
    last = { finishedAt, id }
    if (logs.length > 0) runs.push({ id, version })
  }
  return { runs, last }
}

function isAfter(one: EndCursor, other: EndCursor): boolean {
  return one.finishedAt === other.finishedAt ? one.id > other.id : one.finishedAt > other.finishedAt
}

type ReferParams = Parameters<ArchivingStorage['refer']>[0]

function refer({ table, rules, strays }: Memory, { runId, version, name }: ReferParams): boolean {
  const entry = table.find(runId)
  if (entry === undefined) return false
  const { record } = entry
  const isAsItWas =
    rules.allowsFrom('archive', record.status) &&
    rules.allows('archive', 'version', () => record.version === version) &&
    rules.allows('archive', 'announced', () => strays.isAnnounced(name))
  if (!isAsItWas) return false
  if (record.logRef != null) strays.add(record.logRef)
  strays.forget([name])
  table.change(entry, { logRef: name }, [])
  return true
}

type UnarchivedOptions = Parameters<ArchivingStorage['getUnarchived']>[1]

function getUnarchived({ table }: Memory, runId: string, { tenant, last, limit }: UnarchivedOptions) {
  const logs = table.find(runId, tenant)?.logs ?? []
  const start = countUpTo(logs, last)
  return logs.slice(start, limit === undefined ? undefined : start + limit)
}

type RemoveParams = Parameters<ArchivingStorage['removeArchived']>[0]

function removeArchived({ table }: Memory, { runId, name, last, limit }: RemoveParams): boolean {
  const entry = table.find(runId)
  if (entry?.record.logRef !== name) return true
  const archived = countUpTo(entry.logs, last)
  entry.dropLogs(Math.min(archived, limit))
  return archived <= limit
}

/** How many there are up to this one; none where it is not there. */
function countUpTo(logs: readonly LogRecord[], id: string | null): number {
  return logs.findIndex((log) => log.id === id) + 1
}
