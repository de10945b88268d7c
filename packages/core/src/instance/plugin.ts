import type { Durably } from './api'
import { InvalidOptionError, type OptionNames, refuseMisspelledOptions, refuseUnknownOptions } from '../base'
import { EVENT_TYPES } from '../job'
import { type Hooks, type RecordedHistory, recordedTypes, type StopOptions } from '../engine'
import { capability, type Storage } from '../port'

/** Extends an instance: `durably.use(plugin)`. */
export interface Plugin extends Hooks {
  /** Called once by `use()`. What it returns is called by `close()`. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most plugins return nothing
  install?(durably: Durably): Uninstall | void
  /** Called by `start()`, for what the plugin does beside the worker; what it returns is called once by `stop()` or `close()`. */
  whileStarted?(durably: Durably, term: StartedTerm): Uninstall
  /**
   * Takes `start()` over: from then on the worker runs when the plugin says so. What it returns is called once by
   * `stop()` or `close()`, after the worker has stopped. One plugin of an instance may have it.
   */
  leadWorker?(worker: WorkerSwitch, durably: Durably): Uninstall
}

/** From `start()` to `stop()`. */
export interface StartedTerm {
  /** Resolves when the worker has nothing in hand any more, while `stop()` waits for what `whileStarted` returned. */
  readonly workerStopped: Promise<void>
}

/** The worker in the hands of a plugin. Without effect before `durably.start()` and after `durably.stop()`. */
export interface WorkerSwitch {
  /** Starts the worker; one that runs looks for runs. */
  start(): void
  stop(options?: StopOptions): Promise<void>
  /**
   * Takes no more runs until `start()`; those in hand go on. Resolves when they have ended: the worker has stopped then, unless
   * it was started again.
   */
  finish(): Promise<void>
  /** Whether the worker executes runs of this job. */
  knows(jobName: string): boolean
  /** Jobs that have due runs and that the worker does not execute. */
  unknownJobs(): Promise<readonly string[]>
  /**
   * What a due run waits for, where the plugin knows: `explain()` says so, after "is due; ". `null` leaves it to the engine.
   */
  explain(words: (jobName: string) => string | null): void
}

/** Undoes what `install` did. */
export type Uninstall = () => void | Promise<void>

const HISTORY: OptionNames<RecordedHistory> = { logs: true, events: true, progress: true, chunks: true }

const PLUGIN: OptionNames<Plugin> = {
  name: true,
  records: true,
  logArchive: true,
  staleThreshold: true,
  traceParent: true,
  aroundRun: true,
  aroundStep: true,
  install: true,
  whileStarted: true,
  leadWorker: true,
  workerLabels: true,
}

/** A plugin that cannot work is refused when it is used, not when it is needed. */
export function requireUsable(storage: Storage, plugin: Plugin): void {
  if (typeof plugin !== 'object' || plugin === null) throw new InvalidOptionError('use() needs a plugin.')
  const { name, records } = plugin
  // It may have properties of its own; a hook with a slip in its name would never be called.
  refuseMisspelledOptions(`Plugin "${name}"`, plugin, PLUGIN)
  for (const hook of ['traceParent', 'aroundRun', 'aroundStep', 'install', 'whileStarted', 'leadWorker'] as const) {
    if (plugin[hook] !== undefined && typeof plugin[hook] !== 'function') {
      throw new InvalidOptionError(`${hook} of plugin "${name}" is not a function.`)
    }
  }
  if (plugin.logArchive !== undefined) capability(storage, 'archiving', `Plugin "${name}"`)
  if (records === undefined) return
  refuseUnknownOptions(`records of plugin "${name}"`, records, HISTORY)
  refuseUnknownTypes(plugin.name, records.events)
  if (records.logs === true) capability(storage, 'logs', `Plugin "${name}"`)
  if (recordedTypes(records).size > 0) capability(storage, 'events', `Plugin "${name}"`)
}

function refuseUnknownTypes(plugin: string, events: RecordedHistory['events']): void {
  if (typeof events !== 'object') return
  const unknown = events.find((type) => !EVENT_TYPES.includes(type))
  if (unknown !== undefined)
    throw new InvalidOptionError(`Plugin "${plugin}" wants "${unknown}"; there is no such event.`)
}
