import {
  type AuditNote,
  type Instant,
  isSuspect,
  type JobLimits,
  type JobLoad,
  type LimitedClaim,
  type LimitedClaimParams,
  type LimitStorage,
  MOST_STARTS,
  type RunRecord,
} from '../port'
import { claim } from './claim'
import type { Memory } from './memory'

/** What is kept of jobs, whatever becomes of their runs. */
export class JobStates {
  readonly paused = new Set<string>()
  /** Oldest first. */
  readonly #starts = new Map<string, Instant[]>()

  noteStart(jobName: string, now: Instant): void {
    const starts = this.#starts.get(jobName) ?? []
    starts.push(now)
    this.#starts.set(jobName, starts.length < 2 * MOST_STARTS ? starts : starts.slice(-MOST_STARTS))
  }

  /** The one that is so many starts ago. */
  startBefore(jobName: string, starts: number): Instant | undefined {
    const all = this.#starts.get(jobName)
    return all?.[all.length - starts]
  }
}

export function claimWithin(memory: Memory, params: LimitedClaimParams, limits: JobLimits): LimitedClaim {
  const { jobName, rateLimit } = limits
  const runs: RunRecord[] = []
  while (runs.length < params.limit && memory.rules.allows('claim', 'limits', () => hasRoom(memory, limits))) {
    const holdsSuspect = params.holdsSuspect || runs.some(isSuspect)
    const [run] = claim(memory, { ...params, holdsSuspect, jobs: [jobName], limit: 1 })
    if (run === undefined) break
    if (rateLimit !== null) memory.jobs.noteStart(jobName, memory.clock.now())
    runs.push(run)
  }
  return { runs, opensInMs: opensInMs(memory, limits) }
}

export function loadOf(memory: Memory, limits: JobLimits): JobLoad {
  return { running: runningOf(memory, limits.jobName), opensInMs: opensInMs(memory, limits) }
}

type Pauses = Pick<LimitStorage, 'pause' | 'resume' | 'paused'>

export function createPauses({ jobs, hints, audit }: Memory, write: <T>(apply: () => T) => Promise<T>): Pauses {
  const noteChange = (jobName: string, note: AuditNote | undefined, paused: boolean) => {
    if (note === undefined) return
    const [before, after] = [{ paused: jobs.paused.has(jobName) }, { paused }]
    audit.add(note, { tenant: '', targetKind: 'job', target: jobName, before, after })
  }
  return {
    pause: (jobName, note) =>
      write(() => {
        noteChange(jobName, note, true)
        jobs.paused.add(jobName)
      }),
    resume: (jobName, note) =>
      write(() => {
        noteChange(jobName, note, false)
        if (jobs.paused.delete(jobName)) hints.noteDue()
      }),
    paused: async () => [...jobs.paused].sort(),
  }
}

function hasRoom(memory: Memory, limits: JobLimits): boolean {
  const { jobName, concurrency } = limits
  return (concurrency === null || runningOf(memory, jobName) < concurrency) && opensInMs(memory, limits) === 0
}

function runningOf({ table }: Memory, jobName: string): number {
  let running = 0
  for (const { record } of table.running) running += Number(record.jobName === jobName)
  return running
}

function opensInMs({ jobs, clock }: Memory, { jobName, rateLimit }: JobLimits): number {
  if (rateLimit === null) return 0
  const blocking = jobs.startBefore(jobName, rateLimit.max)
  if (blocking === undefined) return 0
  return Math.max(0, rateLimit.per - (Date.parse(clock.now()) - Date.parse(blocking)))
}
