import { ENDED_STATUSES, type RunStatus } from '../base'

/**
 * The life of a run as data. Memory storage enforces exactly the guards listed here, the SQL storages derive their
 * status guards from it, `docs/lifecycle.md` prints it, and the tests take each guard away in turn to see it missed.
 */

/** What must hold, inside the write itself, for a transition to happen. */
export const GUARDS = {
  status: 'the run is in one of the `from` states',
  idempotencyKey: 'no run of the same tenant and job has the key',
  due: '`availableAt` has come by the clock of the storage',
  known: 'the worker knows the job',
  suspect: 'the run is no suspect, or the worker holds no other one',
  slot: 'a slot of the concurrency key is free; it is taken by the same write',
  paused: 'the job is not paused in the database',
  limits: 'the job has room under the limits that it has in the database, if it has any',
  lease: 'lease epoch and claim token (and leader epoch) are those of the holder',
  commitNo: 'the commit is the next one under this lease',
  expired: 'the lease has run out by the clock of the storage, or its worker was named dead',
  notHeld: 'the worker does not hold the lease itself',
  assignee: 'the run is assigned to this worker',
  version: 'the run has not changed since it was read',
  leader: 'the caller leads under the newest leader epoch',
  unneeded: 'the runs that wait for it have ended too',
  announced: 'the name in the archive was announced, and nobody has given it up',
  overdue: 'the assignment is older than it may be',
  leaderless: 'nobody has led for 30 seconds',
} as const

/** The name of a guard. */
export type Guard = keyof typeof GUARDS

/** One row of the lifecycle. */
export interface Transition {
  readonly from: readonly RunStatus[]
  readonly to: readonly RunStatus[]
  readonly by: string
  readonly guards: readonly Guard[]
}

const RUNNING = ['running'] as const
const WAITING = ['pending', 'assigned', 'orphaned'] as const
const ENDED_WITHOUT_OUTPUT = ['failed', 'timed_out', 'cancelled'] as const
const PENDING = ['pending'] as const

/**
 * The states in which a run takes a command: of the lifecycle what the engine needs, for its messages. The rest is for
 * storages and tests, and applications do not download it: bundlers leave out an object that is made of nothing but constants.
 */
export const COMMANDED_FROM = {
  requestCancel: RUNNING,
  cancel: WAITING,
  retry: ENDED_WITHOUT_OUTPUT,
  park: PENDING,
  remove: ENDED_STATUSES,
} as const satisfies Record<string, readonly RunStatus[]>

const BY_HOLDER = 'the holder'
const OF_HOLDER = ['status', 'lease', 'commitNo'] as const

/** `to` lists every state the transition can end in; where there are two or more, the flag to cancel or a limit decides. */
export const LIFECYCLE = {
  enqueue: { from: [], to: ['pending'], by: 'anyone', guards: ['idempotencyKey'] },
  claim: {
    from: PENDING,
    to: ['running'],
    by: 'any worker',
    guards: ['status', 'due', 'known', 'suspect', 'slot', 'paused', 'limits'],
  },
  commit: { from: RUNNING, to: ['running'], by: BY_HOLDER, guards: OF_HOLDER },
  renew: { from: RUNNING, to: ['running'], by: 'the holder', guards: ['status', 'lease'] },
  complete: { from: RUNNING, to: ['completed', 'cancelled'], by: BY_HOLDER, guards: OF_HOLDER },
  fail: { from: RUNNING, to: ['failed', 'cancelled'], by: BY_HOLDER, guards: OF_HOLDER },
  timeOut: { from: RUNNING, to: ['timed_out', 'cancelled'], by: BY_HOLDER, guards: OF_HOLDER },
  cancelled: { from: RUNNING, to: ['cancelled'], by: BY_HOLDER, guards: OF_HOLDER },
  retryLater: { from: RUNNING, to: ['pending', 'cancelled'], by: BY_HOLDER, guards: OF_HOLDER },
  suspend: { from: RUNNING, to: ['pending', 'cancelled'], by: BY_HOLDER, guards: OF_HOLDER },
  release: { from: RUNNING, to: ['pending', 'cancelled'], by: BY_HOLDER, guards: OF_HOLDER },
  park: { from: RUNNING, to: ['pending', 'cancelled'], by: BY_HOLDER, guards: OF_HOLDER },
  recover: {
    from: RUNNING,
    to: ['pending', 'cancelled', 'failed'],
    by: 'any worker',
    guards: ['status', 'expired', 'notHeld'],
  },
  assign: {
    from: ['pending', 'orphaned'],
    to: ['assigned'],
    by: 'the leader',
    guards: ['status', 'version', 'leader', 'slot'],
  },
  start: {
    from: ['assigned'],
    to: ['running'],
    by: 'the assigned worker',
    guards: ['status', 'assignee', 'version'],
  },
  decline: {
    from: ['assigned'],
    to: ['orphaned'],
    by: 'the assigned worker',
    guards: ['status', 'assignee', 'version'],
  },
  orphan: {
    from: ['assigned'],
    to: ['orphaned'],
    by: 'the leader, or any worker when there is none',
    guards: ['status', 'overdue', 'leader', 'leaderless'],
  },
  free: {
    from: ['orphaned'],
    to: ['pending'],
    by: 'any worker when there is no leader',
    guards: ['status', 'leaderless'],
  },
  requestCancel: { from: RUNNING, to: ['running'], by: 'an operator', guards: ['status'] },
  cancel: { from: WAITING, to: ['cancelled'], by: 'an operator', guards: ['status'] },
  retry: { from: ENDED_WITHOUT_OUTPUT, to: ['pending'], by: 'an operator', guards: ['status'] },
  parkPending: { from: PENDING, to: ['pending'], by: 'the engine', guards: ['status'] },
  unpark: { from: PENDING, to: ['pending'], by: 'an operator', guards: ['status'] },
  failParked: { from: PENDING, to: ['failed'], by: 'an operator', guards: ['status'] },
  remove: { from: ENDED_STATUSES, to: [], by: 'an operator', guards: ['status'] },
  purge: { from: ENDED_STATUSES, to: [], by: 'an operator', guards: ['status', 'unneeded'] },
  archive: {
    from: ENDED_STATUSES,
    to: ENDED_STATUSES,
    by: 'any process; the logs of the run leave after it',
    guards: ['status', 'version', 'announced'],
  },
  signal: {
    from: ['pending', 'assigned', 'running', 'orphaned'],
    to: ['pending', 'assigned', 'running', 'orphaned'],
    by: 'anyone',
    guards: ['status'],
  },
} as const satisfies Record<string, Transition>

/** The name of a transition. */
export type TransitionName = keyof typeof LIFECYCLE

/** The lifecycle, or one that a test has changed. */
export type Lifecycle = Readonly<Record<TransitionName, Transition>>
