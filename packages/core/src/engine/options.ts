import type { EngineOptions } from './engine'
import {
  type Environment,
  InvalidOptionError,
  type Logger,
  type OptionNames,
  refuseBadText,
  refuseUnknownOptions,
  requireDuration,
  requireInteger,
  refuseBadDuration,
} from '../base'
import type { Storage } from '../port'

/** What `createDurably` takes. */
export interface DurablyOptions {
  readonly storage: Storage
  /** Milliseconds between two looks for runs that this process was not told of. Default 1000. */
  readonly pollingInterval?: number | undefined
  /** Milliseconds between two renewals of the leases. Default 5000. */
  readonly heartbeatInterval?: number | undefined
  /** Milliseconds without renewal after which a run is taken from its worker. Default 30000. */
  readonly staleThreshold?: number | undefined
  /** Runs executed at a time by this instance. Default 1. */
  readonly concurrency?: number | undefined
  /** Names this worker in the database. Two living processes must not share it. Default: a new id. */
  readonly workerId?: string | undefined
  /**
   * After so many lost workers in a row without a recorded step or a new checkpoint (`save`) a run fails with the code
   * `crash_limit`. From the second on it is a suspect: a worker holds one at a time, and only the suspect is blamed when
   * the worker is lost. With 1 or 2 nobody is spared: all runs of a lost worker count it, and may fail. Default 5.
   */
  readonly maxCrashes?: number | undefined
  /** Default `console`; `null` for none. */
  readonly logger?: Logger | null | undefined
  /** Time, ids and chance, for tests. */
  readonly environment?: Partial<Environment> | undefined
}

const DURABLY_OPTIONS: OptionNames<DurablyOptions> = {
  storage: true,
  pollingInterval: true,
  heartbeatInterval: true,
  staleThreshold: true,
  concurrency: true,
  workerId: true,
  maxCrashes: true,
  logger: true,
  environment: true,
}

const ENVIRONMENT: OptionNames<Environment> = { clock: true, createId: true, random: true }

/** What no storage can do without. */
const STORAGE_METHODS: readonly (keyof Storage)[] = [
  ...(['migrate', 'enqueue', 'claim', 'commit', 'renew', 'recover', 'command', 'purge'] as const),
  ...(['getRun', 'getRuns', 'getSteps', 'counts', 'nextDue'] as const),
]

/** Before anything is made of them. */
export function requireDurablyOptions(options: DurablyOptions): void {
  refuseUnknownOptions('createDurably()', options, DURABLY_OPTIONS)
  if (options.environment !== undefined) refuseUnknownOptions('environment', options.environment, ENVIRONMENT)
  requireLogger(options.logger)
  requireStorage(options.storage)
}

function requireLogger(logger: unknown): void {
  if (logger === undefined || logger === null) return
  if (typeof (logger as Partial<Logger>).error === 'function') return
  throw new InvalidOptionError('logger must have a method error(), as console has it, or be null for none.')
}

function requireStorage(storage: Storage): void {
  if (typeof storage !== 'object' || storage === null) {
    throw new InvalidOptionError(
      `storage must be a Storage, for example createMemoryStorage() or createKyselyStorage({ dialect }), not ${storage === null ? 'null' : `a ${typeof storage}`}.`,
    )
  }
  if ('then' in storage) throw new InvalidOptionError('storage is a promise: await it before createDurably().')
  const missing = STORAGE_METHODS.filter((name) => typeof storage[name] !== 'function')
  if (missing.length === 0) return
  throw new InvalidOptionError(`storage is no Storage: it has no ${missing.map((name) => `${name}()`).join(', ')}.`)
}

export function resolveOptions(options: DurablyOptions, environment: Environment): EngineOptions {
  const resolved = {
    workerId: options.workerId ?? environment.createId(),
    concurrency: options.concurrency ?? 1,
    pollingIntervalMs: options.pollingInterval ?? 1000,
    heartbeatIntervalMs: options.heartbeatInterval ?? 5000,
    leaseMs: options.staleThreshold ?? 30_000,
    maxCrashes: options.maxCrashes ?? 5,
  }
  if (resolved.workerId === '') throw new InvalidOptionError('workerId must not be empty.')
  refuseBadText('workerId', resolved.workerId)
  requireDuration('pollingInterval', resolved.pollingIntervalMs)
  requireDuration('heartbeatInterval', resolved.heartbeatIntervalMs)
  requireDuration('staleThreshold', resolved.leaseMs)
  for (const name of ['concurrency', 'maxCrashes'] as const) requireInteger(name, resolved[name], { from: 1 })
  refuseShortLease(resolved.leaseMs, resolved.heartbeatIntervalMs)
  return resolved
}

/** Refuses what a plugin needs, as it would be refused of the application. */
export function refuseBadLease(leaseMs: number, { heartbeatIntervalMs }: EngineOptions): void {
  requireDuration('staleThreshold', leaseMs)
  refuseShortLease(leaseMs, heartbeatIntervalMs)
}

function refuseShortLease(leaseMs: number, heartbeatIntervalMs: number): void {
  if (leaseMs >= heartbeatIntervalMs * 2) return
  throw new InvalidOptionError(
    'staleThreshold must be at least twice heartbeatInterval, or healthy runs would be lost.',
  )
}

const STOP_OPTIONS: OptionNames<StopOptions> = { timeout: true }

/** How `stop()` deals with runs in progress. */
export interface StopOptions {
  /** Milliseconds to wait for the runs in progress; then they are released for others. Without it, they are awaited. */
  readonly timeout?: number | undefined
}

/** Before anything stops. */
export function requireStopOptions(options: StopOptions): StopOptions {
  refuseUnknownOptions('stop()', options, STOP_OPTIONS)
  refuseBadDuration('timeout', options.timeout)
  return options
}
