import {
  type ArchivingStorage,
  type AuditStorage,
  type CommitAnswer,
  createsRuns,
  type DebounceStorage,
  type ForkStorage,
  type RunCommit,
  type SettingsStorage,
  type StatisticsStorage,
} from '@coji/durably-core/storage'
import type { Executor } from './connection'
import type { Transaction } from 'kysely'
import type { SqlContext, StatementTarget } from './statement'
import { createStatisticsReads } from './read'
import type { Watchers } from './watch'
import {
  createArchiving,
  createAudit,
  createDebounce,
  createFork,
  createJoinBatch,
  createSettings,
  createStatisticsWrites,
} from './write'

export type Passed = <T>(write: () => Promise<T> | T) => Promise<T>
export type Told = ReturnType<typeof tellers>

interface GroupParts {
  readonly executor: Executor
  readonly told: Told
  readonly passed: Passed
  /** Has something written in a transaction of the caller's. */
  readonly within: <T>(transaction: object, work: (target: StatementTarget) => Promise<T>) => Promise<T>
}

/** Optional groups that need nothing of the others. */
export function createGroups<DB>(context: SqlContext, parts: GroupParts) {
  const { executor, passed } = parts
  const [audit, settings] = [createAudit(context), createSettings(context)]
  return {
    forks: createForks(context, parts),
    debounce: createDebouncing<DB>(context, parts),
    archiving: createArchives(context, parts),
    statistics: createStatistics(context, parts),
    audit: {
      list: (query) => audit.list(executor.callers, query),
      purge: (params) => passed(() => audit.purge(executor.removers, params)),
    } satisfies AuditStorage,
    settings: {
      get: () => settings.get(executor.callers),
      set: (changes, note) => passed(() => settings.set(executor.callers, changes, note)),
    } satisfies SettingsStorage,
  }
}

function createForks(context: SqlContext, { executor, told, passed }: GroupParts): ForkStorage {
  const fork = createFork(context)
  return {
    fork: async (order) =>
      told.due(await passed(() => fork(executor.callers, order)), (run) => (run === null ? [] : [run.id])),
  }
}

function createDebouncing<DB>(
  context: SqlContext,
  { executor, told, passed, within }: GroupParts,
): DebounceStorage<Transaction<DB>> {
  const [enqueue, join] = [createDebounce(context), createJoinBatch(context)]
  return {
    async enqueue(debounced, transaction) {
      if (transaction !== undefined) return within(transaction, (target) => enqueue(target, debounced))
      return told.due(await passed(() => enqueue(executor.callers, debounced)), ({ run }) => [run.id])
    },
    async join(batched, transaction) {
      if (transaction !== undefined) return within(transaction, (target) => join(target, batched))
      return told.due(await passed(() => join(executor.callers, batched)), ({ run }) => [run.id])
    },
  }
}

function createArchives(context: SqlContext, { executor, told, passed }: GroupParts): ArchivingStorage {
  const archiving = createArchiving(context)
  const { callers, removers } = executor
  return {
    findLogged: (params) => archiving.findLogged(callers, params),
    announce: (name) => passed(() => archiving.announce(removers, name)),
    async refer(params) {
      const isKept = await passed(() => archiving.refer(removers, params))
      return told.changed(isKept, () => (isKept ? [params.runId] : []))
    },
    getUnarchived: (runId, options) => archiving.getUnarchived(callers, runId, options),
    removeArchived: (params) => passed(() => archiving.removeArchived(removers, params)),
    giveUp: (params) => passed(() => archiving.giveUp(removers, params)),
    forget: (names) => passed(() => archiving.forget(removers, names)),
  }
}

function createStatistics(context: SqlContext, { executor, passed }: GroupParts): StatisticsStorage {
  const { callers } = executor
  const [reads, writes] = [createStatisticsReads(context), createStatisticsWrites(context)]
  return {
    ends: (params) => reads.ends(callers, params),
    hours: (query) => reads.hours(callers, query),
    fold: (fold) => passed(() => writes.fold(callers, fold)),
    forget: (before) => passed(() => writes.forget(callers, before)),
  }
}

/** Passes an answer on and tells the watchers of it. */
export function tellers(watchers: Watchers) {
  function changed<T>(answer: T, runIds: (answer: T) => readonly string[]): T {
    watchers.noteChanged(runIds(answer))
    return answer
  }
  return {
    changed,
    due<T>(answer: T, runIds: (answer: T) => readonly string[]): T {
      const ids = runIds(answer)
      watchers.noteChanged(ids)
      if (ids.length > 0) watchers.noteDue()
      return answer
    },
    left(answer: readonly CommitAnswer[], all: readonly RunCommit[]): readonly CommitAnswer[] {
      const commits = all.filter((_commit, index) => answer[index]?.kept === true)
      watchers.noteChanged(commits.map(({ lease }) => lease.runId))
      const hasLeft = commits.some((commit) => commit.outcome !== null || createsRuns(commit))
      if (hasLeft) watchers.noteDue()
      return answer
    },
  }
}
