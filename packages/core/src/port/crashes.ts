import type { EventTemplate, RunRecord } from './records'
import type { RecoverParams } from './storage'

/**
 * From so many lost workers in a row without progress a run is a suspect: it may be what ends its workers. A worker
 * holds one suspect at a time, so that with a lost worker it is plain which of its runs is to blame.
 */
export const SUSPECT_FROM = 2

/** Whether the run may be what ends its workers. */
export function isSuspect({ crashCount }: Pick<RunRecord, 'crashCount'>): boolean {
  return crashCount >= SUSPECT_FROM
}

/** How long a run waits after the n-th crash in a row without progress (n = its new `crashCount`). */
export const CRASH_BACKOFF = { baseMs: 1000, capMs: 60_000 } as const

/** The first crash costs no time; from the second on up to 2 s, 4 s, 8 s … and at least half of that. */
export function crashBackoffMs(crashCount: number, jitter: number): number {
  if (crashCount <= 1) return 0
  return jittered(Math.min(CRASH_BACKOFF.baseMs * 2 ** (crashCount - 1), CRASH_BACKOFF.capMs), jitter)
}

/** A run that was lost with its worker, as it was before. */
export interface LostRun extends Pick<RunRecord, 'id' | 'jobName' | 'crashCount' | 'cancelRequestedAt'> {
  /** Another run that the worker holds, its lease run out or not, is a suspect. */
  readonly isBesideSuspect: boolean
}

/** What becomes of it. */
export interface Recovery {
  readonly status: 'pending' | 'cancelled' | 'failed'
  readonly crashCount: number
  /** Of a pending run: when it may start again; 0 is its old place in the queue. */
  readonly delayMs: number
  /** Of a failed one. */
  readonly failure: RecoverParams['crashLimit'] | null
  readonly events: readonly EventTemplate[]
}

/** What decides over all runs of one call. */
export type RecoveryTerms = Pick<
  RecoverParams,
  'isCrash' | 'maxCrashes' | 'jitter' | 'crashLimit' | 'failsOnly' | 'events'
>

/**
 * The one rule of every storage: a lost worker counts towards the limit of the suspect it held, not of its neighbours. One
 * that left on purpose counts for nobody.
 */
export function recoveryOf(run: LostRun, terms: RecoveryTerms): Recovery {
  const { isCrash = true, maxCrashes, jitter, crashLimit, events } = terms
  if (!isCrash) return givenBack(run, events)
  const isSpared = run.isBesideSuspect && !isSuspect(run)
  const crashCount = run.crashCount + (isSpared ? 0 : 1)
  const ended = { crashCount, delayMs: 0, failure: null }
  if (run.cancelRequestedAt !== null) return { ...ended, status: 'cancelled', events: events.cancelled }
  if (!isSpared && crashCount >= maxCrashes) {
    if (terms.failsOnly?.includes(run.jobName) === false) return { ...ended, status: 'pending', events: events.pending }
    return { ...ended, status: 'failed', failure: crashLimit, events: events.failed }
  }
  const own = jitterOf(run.id, jitter)
  const isSparedAgain = isSpared && crashCount > 0
  const delayMs = isSparedAgain ? jittered(CRASH_BACKOFF.baseMs, own) : crashBackoffMs(crashCount, own)
  return { status: 'pending', crashCount, delayMs, failure: null, events: events.pending }
}

function givenBack({ crashCount, cancelRequestedAt }: LostRun, events: RecoveryTerms['events']): Recovery {
  const status = cancelRequestedAt === null ? 'pending' : 'cancelled'
  return { status, crashCount, delayMs: 0, failure: null, events: events[status] }
}

function jittered(ms: number, jitter: number): number {
  return Math.round(ms * (0.5 + jitter / 2))
}

/** Runs that are lost together do not come back together. Ids made one after the other differ at their end. */
function jitterOf(runId: string, jitter: number): number {
  let spread = 0
  for (let index = Math.max(0, runId.length - 4); index < runId.length; index++) {
    spread = spread * 31 + runId.charCodeAt(index)
  }
  return (jitter + spread * GOLDEN) % 1
}

/** Its multiples are spread evenly between the whole numbers. */
const GOLDEN = 0.618_033_988_749_895
