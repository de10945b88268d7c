import type { Durably } from './durably'
import { InvalidOptionError } from './errors'
import type { EventType } from './events'
import { capability } from './runs'
import type { Storage } from './storage'
import type { StopOptions } from './worker'

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

/** What a plugin wants kept in the database. */
export interface RecordedHistory {
  readonly logs?: boolean | undefined
  /** All events, or these types only. */
  readonly events?: boolean | readonly EventType[] | undefined
}

/** Extends an instance: `durably.use(plugin)`. */
export interface Plugin {
  readonly name: string
  readonly records?: RecordedHistory | undefined
  /** The lease the plugin needs, in milliseconds; used when the application gave no `staleThreshold` itself. */
  readonly staleThreshold?: number | undefined
  /** Wraps each execution of a job. Calling `next` again runs the job function again, over the steps recorded so far. */
  aroundRun?(run: RunInfo, next: () => Promise<unknown>): Promise<unknown>
  /** Wraps each body of a step. Calling `next` again runs the body again. */
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
  aroundRun(run: RunInfo, body: () => Promise<unknown>): Promise<unknown>
  aroundStep(step: StepInfo, body: () => Promise<unknown>): Promise<unknown>
}

export function createPlugins(): Plugins {
  const plugins: Plugin[] = []
  let logs = false
  let everyEvent = false
  let longestLease: number | undefined
  const eventTypes = new Set<EventType>()
  return {
    add(plugin) {
      plugins.push(plugin)
      longestLease = longer(longestLease, plugin.staleThreshold)
      logs ||= plugin.records?.logs === true
      everyEvent ||= plugin.records?.events === true
      if (Array.isArray(plugin.records?.events)) for (const type of plugin.records.events) eventTypes.add(type)
      // Who has the chunks has to know which of them count.
      if (eventTypes.has('step:chunk')) eventTypes.add('step:restart')
    },
    staleThreshold: () => longestLease,
    recordsLogs: () => logs,
    recordsEvent: (type) => everyEvent || eventTypes.has(type),
    // The plugin used first is the outermost.
    aroundRun: (run, body) =>
      plugins.reduceRight((next, plugin) => {
        const around = plugin.aroundRun?.bind(plugin)
        return around === undefined ? next : () => around(run, next)
      }, body)(),
    aroundStep: (step, body) =>
      plugins.reduceRight((next, plugin) => {
        const around = plugin.aroundStep?.bind(plugin)
        return around === undefined ? next : () => around(step, next)
      }, body)(),
  }
}

/** Of two leases, where there are two. */
export function longer(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)
}

/** A plugin that cannot work is refused when it is used, not when it is needed. */
export function requireUsable(storage: Storage, plugin: Plugin): void {
  if (typeof plugin !== 'object' || plugin === null) throw new InvalidOptionError('use() needs a plugin.')
  const { name, records } = plugin
  for (const hook of ['aroundRun', 'aroundStep', 'install', 'leadWorker'] as const) {
    if (plugin[hook] !== undefined && typeof plugin[hook] !== 'function') {
      throw new InvalidOptionError(`${hook} of plugin "${name}" is not a function.`)
    }
  }
  for (const group of ['logs', 'events'] as const) {
    const wanted = records?.[group]
    if (wanted === true || (Array.isArray(wanted) && wanted.length > 0)) capability(storage, group, `Plugin "${name}"`)
  }
}
