import type { Durably } from './durably'
import { InvalidOptionError } from './errors'
import { EVENT_TYPES, type EventType } from './events'
import { onRejection } from './guarded'
import { refuseMisspelledOptions, refuseUnknownOptions, type OptionNames } from './known-options'
import { capability } from './runs'
import type { Storage } from './storage'
import type { StopOptions } from './stop-options'

/** What `aroundRun` knows of the run. */
export interface RunInfo {
  readonly runId: string
  readonly jobName: string
  readonly payload: unknown
  readonly attempt: number
  readonly signal: AbortSignal
}

/** What `aroundStep` knows of the step. */
export interface StepInfo {
  readonly runId: string
  readonly jobName: string
  readonly stepName: string
  readonly stepIndex: number
  readonly signal: AbortSignal
}

/** What a plugin wants kept in the database. What it does not name is not. */
export interface RecordedHistory {
  /** What jobs log, for `getLogs()`; with all `events`, or `log:write` among them, in the order of the events too. */
  readonly logs?: boolean | undefined
  /** All events, or these types only, for `getEvents()` and `subscribe()`. */
  readonly events?: boolean | readonly EventType[] | undefined
  /** Each `run:progress`. Without it: as `events` says. The run itself always has its last progress. */
  readonly progress?: boolean | undefined
  /** What `ctx.stream` emits: `step:chunk` and `step:restart`. Without it: as `events` says. */
  readonly chunks?: boolean | undefined
}

const PROGRESS_TYPES: readonly EventType[] = ['run:progress']
const CHUNK_TYPES: readonly EventType[] = ['step:chunk', 'step:restart']

/** The types of events that are kept. */
function recordedTypes({ events, progress, chunks }: RecordedHistory): ReadonlySet<EventType> {
  const types = new Set(events === true ? EVENT_TYPES : events === false ? [] : events)
  const decide = (some: readonly EventType[], isWanted: boolean | undefined) => {
    for (const type of some) {
      if (isWanted === true) types.add(type)
      if (isWanted === false) types.delete(type)
    }
  }
  decide(PROGRESS_TYPES, progress)
  decide(CHUNK_TYPES, chunks)
  return types
}

/** Extends an instance: `durably.use(plugin)`. */
export interface Plugin {
  /** For messages. */
  readonly name: string
  /** What it wants kept in the database; the storage must be able to. */
  readonly records?: RecordedHistory | undefined
  /** The lease the plugin needs, in milliseconds; used when the application gave no `staleThreshold` itself. */
  readonly staleThreshold?: number | undefined
  /** Wraps each execution of a job. Calling `next` again runs the job function again, over the steps recorded so far. */
  aroundRun?(run: RunInfo, next: () => Promise<unknown>): Promise<unknown>
  /**
   * Wraps each body of a step. Calling `next` again runs the body again. Of `ctx.transaction` it wraps the whole transaction,
   * not the body in it: calling `next` again begins another one, or gives what is stored when the first was committed, and
   * what comes after the commit changes nothing. In the transaction a second try would find the rows of the first.
   */
  aroundStep?(step: StepInfo, next: () => Promise<unknown>): Promise<unknown>
  /** Called once by `use()`. What it returns is called by `close()`. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most plugins return nothing
  install?(durably: Durably): Uninstall | void
  /**
   * Takes `start()` over: from then on the worker runs when the plugin says so. What it returns is called once by
   * `stop()` or `close()`, after the worker has stopped. One plugin of an instance may have it.
   */
  leadWorker?(worker: WorkerSwitch, durably: Durably): Uninstall
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

/** The plugins of an instance as the engine asks for them. */
export interface Plugins {
  add(plugin: Plugin): void
  /** The longest lease that one of them needs. */
  staleThreshold(): number | undefined
  recordsLogs(): boolean
  recordsEvent(type: EventType): boolean
  /** Any event at all. */
  recordsEvents(): boolean
  aroundRun(run: RunInfo, body: () => Promise<unknown>): Promise<unknown>
  wrapsSteps(): boolean
  aroundStep(step: StepInfo, body: () => Promise<unknown>): Promise<unknown>
}

export function createPlugins(): Plugins {
  const plugins: Plugin[] = []
  let logs = false
  let longestLease: number | undefined
  const eventTypes = new Set<EventType>()
  return {
    add(plugin) {
      plugins.push(plugin)
      longestLease = longer(longestLease, plugin.staleThreshold)
      logs ||= plugin.records?.logs === true
      for (const type of recordedTypes(plugin.records ?? {})) eventTypes.add(type)
      // Who has the chunks has to know which of them count.
      if (eventTypes.has('step:chunk')) eventTypes.add('step:restart')
    },
    staleThreshold: () => longestLease,
    recordsLogs: () => logs,
    recordsEvent: (type) => eventTypes.has(type),
    recordsEvents: () => eventTypes.size > 0,
    // The plugin used first is the outermost.
    aroundRun: (run, body) =>
      plugins.reduceRight((next, plugin) => {
        const around = plugin.aroundRun?.bind(plugin)
        return around === undefined ? next : () => around(run, mayBeDropped(next))
      }, body)(),
    wrapsSteps: () => plugins.some((plugin) => plugin.aroundStep !== undefined),
    aroundStep: (step, body) =>
      plugins.reduceRight((next, plugin) => {
        const around = plugin.aroundStep?.bind(plugin)
        return around === undefined ? next : () => around(step, mayBeDropped(next))
      }, body)(),
  }
}

/** A plugin need not await what it begins by `next()`. */
function mayBeDropped(next: () => Promise<unknown>): () => Promise<unknown> {
  return () => {
    const work = next()
    onRejection(work, () => {})
    return work
  }
}

/** Of two leases, where there are two. */
export function longer(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)
}

const HISTORY: OptionNames<RecordedHistory> = { logs: true, events: true, progress: true, chunks: true }

const PLUGIN: OptionNames<Plugin> = {
  name: true,
  records: true,
  staleThreshold: true,
  aroundRun: true,
  aroundStep: true,
  install: true,
  leadWorker: true,
}

/** A plugin that cannot work is refused when it is used, not when it is needed. */
export function requireUsable(storage: Storage, plugin: Plugin): void {
  if (typeof plugin !== 'object' || plugin === null) throw new InvalidOptionError('use() needs a plugin.')
  const { name, records } = plugin
  // It may have properties of its own; a hook with a slip in its name would never be called.
  refuseMisspelledOptions(`Plugin "${name}"`, plugin, PLUGIN)
  for (const hook of ['aroundRun', 'aroundStep', 'install', 'leadWorker'] as const) {
    if (plugin[hook] !== undefined && typeof plugin[hook] !== 'function') {
      throw new InvalidOptionError(`${hook} of plugin "${name}" is not a function.`)
    }
  }
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
