import { EVENT_TYPES, type EventType } from '../job'
import { onRejection } from '../base'
import type { LogArchive } from '../port'

/** What `aroundRun` knows of the run. */
export interface RunInfo {
  readonly runId: string
  readonly jobName: string
  readonly payload: unknown
  readonly attempt: number
  readonly signal: AbortSignal
  readonly tenant: string
  /** The W3C `traceparent` of what triggered it, as a plugin knew it. */
  readonly traceParent: string | null
  /** When it started first. */
  readonly startedAt: string | null
  /** Milliseconds from being due to the first start; `null` for an execution that is not the first. */
  readonly queuedMs: number | null
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
export function recordedTypes({ events, progress, chunks }: RecordedHistory): ReadonlySet<EventType> {
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

/** What the engine asks a plugin for. */
export interface Hooks {
  /** For messages. */
  readonly name: string
  /** What it wants kept in the database; the storage must be able to. */
  readonly records?: RecordedHistory | undefined
  /** Where logs are read from that are in the database no more. Of several plugins the first one's. */
  readonly logArchive?: LogArchive | undefined
  /** The lease the plugin needs, in milliseconds; used when the application gave no `staleThreshold` itself. */
  readonly staleThreshold?: number | undefined
  /** The W3C `traceparent` of what is going on just now: it is stored with each run that is triggered meanwhile. */
  traceParent?(): string | null
  /** Labels of this worker, for jobs that want their workers to have some (`placement`). */
  readonly workerLabels?: Readonly<Record<string, string>> | undefined
  /** Wraps each execution of a job. Calling `next` again runs the job function again, over the steps recorded so far. */
  aroundRun?(run: RunInfo, next: () => Promise<unknown>): Promise<unknown>
  /**
   * Wraps each body of a step. Calling `next` again runs the body again. Of `ctx.transaction` it wraps the whole transaction,
   * not the body in it: calling `next` again begins another one, or gives what is stored when the first was committed, and
   * what comes after the commit changes nothing. In the transaction a second try would find the rows of the first.
   */
  aroundStep?(step: StepInfo, next: () => Promise<unknown>): Promise<unknown>
}

/** The plugins of an instance as the engine asks for them. */
export interface Plugins {
  add(plugin: Hooks): void
  /** The longest lease that one of them needs. */
  staleThreshold(): number | undefined
  logArchive(): LogArchive | undefined
  /** Of the first that knows one. */
  traceParent(): string | null
  recordsLogs(): boolean
  recordsEvent(type: EventType): boolean
  /** Any event at all. */
  recordsEvents(): boolean
  aroundRun(run: RunInfo, body: () => Promise<unknown>): Promise<unknown>
  wrapsSteps(): boolean
  aroundStep(step: StepInfo, body: () => Promise<unknown>): Promise<unknown>
}

export function createPlugins(): Plugins {
  const plugins: Hooks[] = []
  let archive: LogArchive | undefined
  const tracers: Hooks[] = []
  let logs = false
  let longestLease: number | undefined
  const eventTypes = new Set<EventType>()
  return {
    add(plugin) {
      plugins.push(plugin)
      archive ??= plugin.logArchive
      if (plugin.traceParent !== undefined) tracers.push(plugin)
      longestLease = longer(longestLease, plugin.staleThreshold)
      logs ||= plugin.records?.logs === true
      for (const type of recordedTypes(plugin.records ?? {})) eventTypes.add(type)
      // Who has the chunks has to know which of them count.
      if (eventTypes.has('step:chunk')) eventTypes.add('step:restart')
    },
    staleThreshold: () => longestLease,
    logArchive: () => archive,
    traceParent() {
      for (const tracer of tracers) {
        const found = tracer.traceParent?.() ?? null
        if (found !== null) return found
      }
      return null
    },
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
