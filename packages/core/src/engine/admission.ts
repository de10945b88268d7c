import type { JobLimits } from '../port'
import { hasLabels, type JobDefinition, RateElsewhere, RateWindow } from '../job'
import type { Clock } from '../base'

/** What one claim asks for: a job that has its limits in the database alone, `null` for all others together. */
export type ClaimLine = JobDefinition | null

/** What one claim may ask for. */
export interface Admitted {
  readonly jobs: readonly string[]
  readonly limit: number
  /** When the first of the jobs that are closed by their rate opens, by the monotonic clock; else never. */
  readonly opensAt: number
  /** Those that the database sees to. */
  readonly limits: JobLimits | null
  /** What may be asked for as long as no run of those waits whose limits make the claim smaller. */
  readonly wide: { readonly jobs: readonly string[]; readonly without: readonly string[] } | null
}

/** What a worker may begin, by when. */
export interface Openings {
  /** Those that have room, or will have it when a run of theirs ends. */
  readonly jobs: readonly string[]
  readonly closedByRate: readonly { readonly job: string; readonly opensInMs: number }[]
}

/** What one worker has in hand of a job that has limits. */
interface Load {
  running: number
  readonly window: RateWindow | RateElsewhere | null
}

/** Which jobs a worker may take runs of, and how many: `concurrency` and `rateLimit` of each, and what is paused. */
export class Admission {
  readonly #jobs: ReadonlyMap<string, JobDefinition>
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #paused = new Set<string>()
  readonly #loads = new Map<string, Load>()
  #turn = 0
  /** Of this worker. */
  labels: Readonly<Record<string, string>> = {}
  /** There is a leader, as far as is known: it places what is to be placed. */
  isLed = true

  constructor(jobs: ReadonlyMap<string, JobDefinition>, clock: Pick<Clock, 'monotonic'>) {
    this.#jobs = jobs
    this.#clock = clock
  }

  pause(jobName: string): void {
    this.#paused.add(jobName)
  }

  resume(jobName: string): void {
    this.#paused.delete(jobName)
  }

  isPaused(jobName: string): boolean {
    return this.#paused.has(jobName)
  }

  paused(): readonly string[] {
    return [...this.#paused]
  }

  /** Each comes first in its turn, so that none takes every free slot from the others. */
  lines(): readonly ClaimLine[] {
    const lines: ClaimLine[] = [null]
    for (const job of this.#jobs.values()) if (job.scope === 'database') lines.push(job)
    if (lines.length === 1) return lines
    this.#turn = (this.#turn + 1) % lines.length
    return [...lines.slice(this.#turn), ...lines.slice(0, this.#turn)]
  }

  /** As many as the job with the least room has room for: a claim takes runs in their order, of whichever job they are. */
  next(free: number, line: ClaimLine): Admitted {
    const now = this.#clock.monotonic()
    const jobs: string[] = []
    const others: string[] = []
    const narrow: string[] = []
    let limit = free
    let opensAt = Number.POSITIVE_INFINITY
    for (const job of this.#jobs.values()) {
      if ((job.scope === 'database' ? job : null) !== line) continue
      const room = this.#roomOf(job, now)
      if (room > 0) {
        jobs.push(job.name)
        const alike = room < free ? narrow : others
        alike.push(job.name)
        limit = Math.min(limit, room)
      } else opensAt = Math.min(opensAt, this.#opensAt(job, now) ?? opensAt)
    }
    const wide = narrow.length > 0 && others.length > 0 ? { jobs: others, without: narrow } : null
    return { jobs, limit, opensAt, limits: line === null ? null : limitsOf(line), wide }
  }

  /** Whether there are jobs here whose runs a leader places. */
  hasPlaced(): boolean {
    for (const { placement } of this.#jobs.values()) if (placement !== null) return true
    return false
  }

  /** A leader is to find a worker for the runs of the job. */
  isForLeader(jobName: string): boolean {
    return this.isLed && this.#jobs.get(jobName)?.placement != null
  }

  /** The worker has the labels that the job wants. */
  fits({ placement }: Pick<JobDefinition, 'placement'>): boolean {
    return placement === null || hasLabels(this.labels, placement.labels)
  }

  /** So many runs of the job that were assigned to this worker may begin. */
  roomToStart(jobName: string): number {
    const job = this.#jobs.get(jobName)
    return job === undefined || !this.fits(job) ? 0 : this.#roomHere(job, this.#clock.monotonic())
  }

  /** Jobs that have room here. */
  open(): readonly string[] {
    const now = this.#clock.monotonic()
    return [...this.#jobs.values()].filter((job) => this.#roomOf(job, now) > 0).map(({ name }) => name)
  }

  /** The database will not let the job begin more before. Answers when that is, by the monotonic clock. */
  opensIn(job: JobDefinition, ms: number): number {
    const opensAt = this.#clock.monotonic() + Math.ceil(ms)
    const window = this.#loadOf(job)?.window
    if (window instanceof RateElsewhere) window.opensNext(opensAt)
    return opensAt
  }

  hasRoom(jobName: string): boolean {
    const job = this.#jobs.get(jobName)
    return job !== undefined && this.#roomOf(job, this.#clock.monotonic()) > 0
  }

  begin(jobName: string): void {
    const load = this.#loadOf(this.#jobs.get(jobName))
    if (load === null) return
    load.running += 1
    load.window?.note(this.#clock.monotonic())
  }

  end(jobName: string): void {
    const load = this.#loads.get(jobName)
    if (load !== undefined) load.running -= 1
  }

  openings(): Openings {
    const now = this.#clock.monotonic()
    const jobs: string[] = []
    const closedByRate: { job: string; opensInMs: number }[] = []
    for (const job of this.#jobs.values()) {
      if (this.#paused.has(job.name)) continue
      const opensAt = this.#opensAt(job, now)
      if (opensAt === null) jobs.push(job.name)
      else closedByRate.push({ job: job.name, opensInMs: Math.ceil(opensAt - now) })
    }
    return { jobs, closedByRate }
  }

  #opensAt(job: JobDefinition, now: number): number | null {
    return this.#loadOf(job)?.window?.opensAt(now) ?? null
  }

  /** For claims: of what a leader places nothing. */
  #roomOf(job: JobDefinition, now: number): number {
    if (job.placement !== null && (this.isLed || !this.fits(job))) return 0
    return this.#roomHere(job, now)
  }

  #roomHere(job: JobDefinition, now: number): number {
    if (this.#paused.has(job.name)) return 0
    const load = this.#loadOf(job)
    if (load === null) return Number.POSITIVE_INFINITY
    const slots = (job.concurrency ?? Number.POSITIVE_INFINITY) - load.running
    return Math.min(slots, load.window?.room(now) ?? slots)
  }

  /** Of a job without limits nothing is kept. */
  #loadOf(job: JobDefinition | undefined): Load | null {
    if (job === undefined || (job.concurrency === null && job.rateLimit === null)) return null
    const known = this.#loads.get(job.name)
    if (known !== undefined) return known
    const load: Load = { running: 0, window: windowOf(job) }
    this.#loads.set(job.name, load)
    return load
  }
}

function windowOf({ scope, rateLimit }: JobDefinition): Load['window'] {
  if (scope === 'database') return new RateElsewhere()
  return rateLimit === null ? null : new RateWindow(rateLimit)
}

export function limitsOf({ name, concurrency, rateLimit }: JobDefinition): JobLimits {
  return { jobName: name, concurrency, rateLimit }
}
