import type { Guard, PurgeParams, RunCommit, RunRecord, Storage, TransitionName } from '../../port'
import { createMemoryStorage, createMemoryStorageWith } from '../../memory/memory-storage'
import type { Task, TaskEventType, TaskQueue } from '../../queue/index'
import { guardMutants } from '../simulation/guard-mutants'
import type { TaskKind } from './task-kinds'
import type { BrokenRule, TaskMutant } from './task-mutant'

const KEPT = { keepEnded: Number.POSITIVE_INFINITY }

/** Rules of the queue, each broken in one place. Histories have to find all of them. */
export const BROKEN_RULES: Readonly<Record<string, BrokenRule>> = {
  ...brokenTimes(),
  ...brokenAttempts(),
  ...brokenHolds(),
  ...brokenLimits(),
  ...brokenReads(),
  ...brokenRemovals(),
  ...brokenEvents(),
}

function brokenTimes(): Record<string, BrokenRule> {
  return {
    'a retry does not wait': {
      ...onCommit((commit) => withDelay(commit, () => 0)),
      shows: /begins \d+ ms before its time/,
    },
    'a retry waits too long': { ...onCommit((commit) => withDelay(commit, (ms) => ms * 2 + 1)), shows: /nextRunAt of/ },
    'the retry policy of a type is ignored': {
      ...onKind({ backoff: { kind: 'fixed', ms: 1 } }),
      shows: /waits 1 ms after attempt/,
    },
    'a delay is forgotten': {
      ...onStorage((storage) => ({
        enqueue: (runs) => storage.enqueue(runs.map((run) => ({ ...run, start: { afterMs: 0 } }))),
      })),
      shows: /begins \d+ ms before its time/,
    },
    'what is not due is taken': { ...withoutGuard('claim', 'due'), shows: /begins \d+ ms before its time/ },
  }
}

function brokenAttempts(): Record<string, BrokenRule> {
  return {
    'a permanent error is tried again': { ...onCommit(neverFail), shows: /is "retry_scheduled", expected "dead"/ },
    'crashes are not counted': { ...onClaimed((run) => ({ ...run, crashCount: 0 })), shows: /begins once more/ },
    'crashes have no limit': {
      ...onStorage((storage) => ({ recover: (params) => storage.recover({ ...params, maxCrashes: 99 }) })),
      shows: /was recovered after \d crashes/,
    },
    'a redrive keeps the attempts': {
      ...onClaimed((run) => ({ ...run, attemptBase: 0 })),
      shows: /the attempt of id\d+ that begins/,
    },
    'there is one attempt more': {
      distort: (kind) => ({ ...kind, maxAttempts: kind.maxAttempts + 1 }),
      shows: /waits \d+ ms after attempt \d, not null|maxAttempts/,
    },
    'what is not dead is redriven': { ...withoutGuard('retry', 'status'), shows: /was redriven, and is/ },
    'a redrive of all is one of the newest': { ...onQueue(redriveOne), shows: /redrive\(\) of all/ },
  }
}

function brokenHolds(): Record<string, BrokenRule> {
  return {
    'a task is taken twice': { ...withoutGuard('claim', 'status'), shows: /begins/ },
    'tasks are taken from the living': {
      ...withoutGuard('recover', 'expired'),
      shows: /was recovered, and is running/,
    },
    'leases are short': {
      ...onStorage((storage) => ({
        claim: (params) => storage.claim({ ...params, leaseMs: 10 }),
        renew: (leases) => storage.renew(leases, 10),
      })),
      shows: /was recovered, and is running|was recovered \d+ ms after its start/,
    },
    'what is given back at a stop goes on running': {
      ...onCommit((commit) => (commit.outcome?.kind === 'release' ? { ...commit, outcome: null } : commit)),
      shows: /is "running", expected "queued"/,
    },
    'a stop is ignored': { ...onQueue(() => ({ stop: async () => {} })), shows: /which is not started|still executes/ },
    'a stop never ends': { ...onQueue(() => ({ stop: () => new Promise(() => {}) })), shows: /did not stop/ },
    'a budget is ignored': {
      ...onQueue((queue) => ({ runUntilIdle: () => queue.runUntilIdle() })),
      shows: /which is not started|should be idle since/,
    },
    'the time of an attempt is ignored': { ...onKind({ timeout: null }), shows: /the time of id\d+ is up/ },
  }
}

function brokenLimits(): Record<string, BrokenRule> {
  return {
    'a claim takes more than was asked for': {
      ...onStorage((storage) => ({ claim: (params) => storage.claim({ ...params, limit: params.limit + 1 }) })),
      shows: /begins in process \d+ beside \d others/,
    },
    'concurrency of a type is ignored': { ...onKind({ concurrency: null }), shows: /of its type; \d are the most/ },
    'the rate of a type is ignored': { ...onKind({ rateLimit: null }), shows: /of its type in \d+ ms/ },
    'a pause is ignored': { ...onQueue(() => ({ pause: async () => {} })), shows: /where its type is paused/ },
    'a resume is ignored': { ...onQueue(() => ({ resume: async () => {} })), shows: /not everything ended/ },
  }
}

function brokenReads(): Record<string, BrokenRule> {
  return {
    'retries are counted as queued': {
      ...onStorage((storage) => ({
        counts: async (query) => ({ ...(await storage.counts(query)), waitsForRetry: 0 }),
      })),
      shows: /the count of queued/,
    },
    'every type is counted': {
      ...onQueue((queue) => ({ countsByState: () => queue.countsByState() })),
      shows: /the count of \w+ \((mail|image|report)\)/,
    },
    'a status is the first that was read': { ...onQueue(rememberStatus), shows: /status of id/ },
    'the list of all leaves one out': {
      ...onQueue((queue) => ({
        list: async (filter) => (await queue.list(filter)).slice(filter?.state === undefined ? 1 : 0),
      })),
      shows: /in the list of all/,
    },
    'a list of a state leaves one out': {
      ...onQueue((queue) => ({
        list: async (filter) => (await queue.list(filter)).slice(filter?.state === 'dead' ? 1 : 0),
      })),
      shows: /the count of dead/,
    },
    'a key is forgotten': {
      ...onStorage((storage) => ({
        enqueue: (runs) => storage.enqueue(runs.map((run) => ({ ...run, idempotencyKey: null }))),
      })),
      shows: /deduplicated of/,
    },
  }
}

function brokenRemovals(): Record<string, BrokenRule> {
  const onPurge = (purge: (storage: Storage, params: PurgeParams) => Promise<number>) =>
    onStorage((storage) => ({ purge: (params) => purge(storage, params) }))
  return {
    'a purge does not ask for the age': {
      ...onPurge((storage, { olderThanMs: _, ...params }) => storage.purge(params)),
      shows: /and is gone/,
    },
    'a purge takes the newest too': {
      ...onPurge((storage, { keepNewest: _, ...params }) => storage.purge(params)),
      shows: /and is gone/,
    },
    'a purge takes every type': {
      ...onPurge((storage, { jobNames: _, ...params }) => storage.purge(params)),
      shows: /purge\(.*\) is \d+, expected/,
    },
    'a purge takes both states': {
      ...onPurge((storage, params) => storage.purge({ ...params, statuses: ['completed', 'failed'] })),
      shows: /purge\(.*\) is \d+, expected|and is gone/,
    },
    'nothing goes for being too many': {
      ...onPurge(async (storage, params) => (params.keepNewest === undefined ? storage.purge(params) : 0)),
      shows: /tasks are \w+, \d are to be kept/,
    },
    'nothing goes for being too old': {
      ...onPurge(async (storage, params) => (params.olderThanMs === undefined ? storage.purge(params) : 0)),
      shows: /is (succeeded|dead) for \d+ ms/,
    },
    'what is removed stays': { ...onQueue(() => ({ remove: async () => {} })), shows: /which was removed/ },
  }
}

function brokenEvents(): Record<string, BrokenRule> {
  return {
    'nothing is said of starts': { ...deafTo('started'), shows: /nobody said started/ },
    'nothing is said of successes': { ...deafTo('succeeded'), shows: /is "succeeded", expected "running"/ },
    'nothing is said of failures': { ...deafTo('failed'), shows: /does not follow its failure/ },
    'nothing is said of retries': {
      ...deafTo('retry_scheduled'),
      shows: /failed, and next is said|expected "running"/,
    },
    'nothing is said of the dead': { ...deafTo('dead'), shows: /failed, and next is said|is "dead", expected/ },
    'nothing is said of what is enqueued': { ...deafTo('enqueued'), shows: /which is not there|nobody said so/ },
  }
}

function deafTo(deaf: TaskEventType): TaskMutant {
  return onQueue((queue) => ({ on: (type, listener) => (type === deaf ? () => {} : queue.on(type, listener)) }))
}

function redriveOne(queue: TaskQueue): Partial<TaskQueue> {
  return {
    redrive: (async (which: string | object) => {
      if (typeof which === 'string') return queue.redrive(which)
      const [task] = await queue.list({ ...which, state: 'dead', limit: 1 })
      if (task !== undefined) await queue.redrive(task.id)
      return task === undefined ? 0 : 1
    }) as TaskQueue['redrive'],
  }
}

function rememberStatus(queue: TaskQueue): Partial<TaskQueue> {
  const first = new Map<string, Promise<Task | null>>()
  return {
    status(id) {
      const known = first.get(id) ?? queue.status(id)
      first.set(id, known)
      return known
    },
  }
}

function onStorage(change: (storage: Storage) => Partial<Storage>): TaskMutant {
  return {
    createStorage(now) {
      const storage = createMemoryStorage({ now, ...KEPT })
      return { ...storage, ...change(storage) }
    },
  }
}

function onCommit(change: (commit: RunCommit) => RunCommit): TaskMutant {
  return onStorage((storage) => ({ commit: (commits) => storage.commit(commits.map(change)) }))
}

function onClaimed(change: (run: RunRecord) => RunRecord): TaskMutant {
  return onStorage((storage) => ({ claim: async (params) => (await storage.claim(params)).map(change) }))
}

function onKind(change: Partial<TaskKind>): TaskMutant {
  return { distort: (kind) => ({ ...kind, ...change }) }
}

function onQueue(change: (queue: TaskQueue) => Partial<TaskQueue>): TaskMutant {
  return { wrapQueue: (queue) => ({ ...queue, ...change(queue) }) }
}

function withoutGuard(transition: TransitionName, guard: Guard): TaskMutant {
  const mutant = guardMutants().find((each) => each.transition === transition && each.guard === guard)
  if (mutant === undefined) throw new Error(`${transition} has no guard ${guard}.`)
  return { createStorage: (now) => createMemoryStorageWith({ now, lifecycle: mutant.lifecycle, ...KEPT }) }
}

function withDelay(commit: RunCommit, change: (ms: number) => number): RunCommit {
  const { outcome } = commit
  if (outcome?.kind !== 'retryLater') return commit
  return { ...commit, outcome: { ...outcome, delayMs: change(outcome.delayMs) } }
}

function neverFail(commit: RunCommit): RunCommit {
  const { outcome } = commit
  return outcome?.kind === 'fail' ? { ...commit, outcome: { ...outcome, kind: 'retryLater', delayMs: 10 } } : commit
}
