import { createDurably, type Durably } from '../../instance'
import type { Clock } from '../../base'
import type { JobHandle } from '../../client'
import type { Storage } from '../../port'
import { SCRIPTS_START_MS } from './script-maker'
import type { BodyStart } from './scripted-bodies'
import { createScriptedJobs } from './scripted-jobs'
import { type Script, SCRIPTED_JOBS, type ScriptedJobName } from './scripts'
import type { Actor, Happening, World } from './world'

export type JobName = ScriptedJobName

export const EVERY_JOB = SCRIPTED_JOBS

export interface ProcessOptions {
  readonly number: number
  readonly workerId: string
  readonly jobs: readonly JobName[]
  readonly concurrency: number
  readonly leaseMs: number
  readonly maxCrashes: number
  readonly keepsHistory: boolean
  readonly wallOffsetMs: number
}

/** A process with an engine in it, and a machine's clocks. */
export interface SimProcess extends Actor {
  readonly number: number
  readonly workerId: string
  readonly durably: Durably
  /** Handles of all jobs; a process may trigger what it does not execute. */
  readonly jobs: Readonly<Partial<Record<JobName, JobHandle<string, Script, unknown>>>>
  readonly clock: Clock
  /** As an administrator or NTP does. */
  setWall(byMs: number): void
  /** The monotonic clock loses this time. */
  freeze(ms: number): void
}

export interface StartProcessParams {
  readonly world: World
  readonly options: ProcessOptions
  readonly storageFor: (process: SimProcess) => Storage
  readonly onBodyStart: (process: SimProcess, start: BodyStart) => void
  readonly onLateChunk: (what: string) => void
  readonly createId: () => string
}

export function startProcess(params: StartProcessParams): SimProcess {
  const { world, options, storageFor, onBodyStart, onLateChunk, createId } = params
  const { number, workerId, leaseMs, maxCrashes, concurrency } = options
  const actor: Actor = { state: 'alive', held: [] as Happening[] }
  const startedAt = world.now()
  let wallOffset = options.wallOffsetMs
  let frozenMs = 0
  const clock: Clock = {
    now: () => WALL_START_MS + world.now() + wallOffset,
    monotonic: () => world.now() - startedAt - frozenMs,
    // As timers do: what is left of a wait may be too little for a number to grow by it.
    schedule: (ms, fn) => world.schedule(Math.ceil(ms), process, fn),
  }
  const process: SimProcess = Object.assign(actor, {
    number,
    workerId,
    clock,
    setWall(byMs: number) {
      wallOffset += byMs
    },
    freeze(ms: number) {
      frozenMs += ms
    },
  }) as SimProcess
  const durably = createDurably({
    storage: storageFor(process),
    environment: { clock, createId, random: world.random.next },
    workerId,
    concurrency,
    staleThreshold: leaseMs,
    heartbeatInterval: leaseMs / 4,
    pollingInterval: 1500,
    maxCrashes,
    logger: null,
  })
  if (options.keepsHistory) durably.use({ name: 'history', records: { logs: true, events: true } })
  let tries = 0
  const all = createScriptedJobs({
    clock,
    onBodyStart: (start) => onBodyStart(process, start),
    nameTry() {
      tries += 1
      return `p${number}t${tries}`
    },
    onLateChunk,
  })
  const known = Object.fromEntries(options.jobs.map((name) => [name, all[name]]))
  return Object.assign(process, { durably, jobs: durably.register(known) as SimProcess['jobs'] })
}

export const WALL_START_MS = SCRIPTS_START_MS
