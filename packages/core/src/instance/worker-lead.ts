import type { Durably } from './api'
import { ask, type Engine, type StopOptions, type WorkerState } from '../engine'
import { InvalidOptionError, onRejection } from '../base'
import type { Plugin, Uninstall, StartedTerm } from './plugin'
import type { Worker } from '../worker'

/** From `start()` to `stop()`. */
interface Term {
  isOver: boolean
  hasLeft: boolean
  leave: Uninstall
  /** What a due run waits for. */
  explain: (jobName: string) => string | null
}

type Leader = Plugin & Required<Pick<Plugin, 'leadWorker'>>

/** Who decides that the worker runs: `start()` itself, or the plugin that has taken it over. Companions go beside it. */
export class WorkerLead {
  readonly #worker: Worker
  readonly #engine: Engine
  readonly #companions = new Companions()
  #leader: Leader | null = null
  #wasStarted = false
  #term: Term | null = null

  constructor(worker: Worker, engine: Engine) {
    this.#worker = worker
    this.#engine = engine
  }

  get state(): WorkerState {
    return this.#worker.state
  }

  /** What a due run of the job waits for, by the plugin. */
  explainDue(jobName: string): string | null {
    return this.#term?.explain(jobName) ?? null
  }

  requireFree(plugin: Plugin): void {
    if (plugin.leadWorker === undefined) return
    if (this.#leader !== null) {
      const names = `"${this.#leader.name}" and "${plugin.name}"`
      throw new InvalidOptionError(`Plugins ${names} both decide when the worker runs; an instance takes one.`)
    }
    if (!this.#wasStarted) return
    throw new InvalidOptionError(`Plugin "${plugin.name}" decides when the worker runs: use() it before start().`)
  }

  add(plugin: Plugin): void {
    this.#companions.add(plugin)
    if (plugin.leadWorker !== undefined) this.#leader = plugin as Leader
  }

  start(durably: Durably): void {
    this.#wasStarted = true
    if (this.#leader === null) this.#worker.start()
    else this.#term ??= this.#newTerm(this.#leader, durably)
    this.#companions.start(durably)
  }

  #newTerm(leader: Leader, durably: Durably): Term {
    const { jobs } = this.#engine
    const term: Term = { isOver: false, hasLeft: false, leave: () => {}, explain: () => null }
    const start = () => {
      if (!term.isOver) this.#worker.start()
    }
    // A term that is over may still hasten its end, but not stop the next one.
    const stop = async (options: StopOptions = {}) => {
      if (!term.hasLeft) await this.#worker.stop(options)
    }
    const finish = async () => {
      if (!term.isOver) await this.#worker.finish()
    }
    const unknownJobs = async () => {
      const { unknownJobs: names } = await ask(this.#engine, (storage) => storage.nextDue([...jobs.keys()]))
      return names
    }
    const explain = (words: Term['explain']) => {
      term.explain = words
    }
    const worker = { start, stop, finish, unknownJobs, explain, knows: (jobName: string) => jobs.has(jobName) }
    const leave = leader.leadWorker(worker, durably)
    if (typeof leave === 'function') term.leave = leave
    onRejection(leave, (error) => this.#engine.reportError(error, `leadWorker of plugin "${leader.name}"`))
    return term
  }

  /** The plugin gives up what it holds when nothing of the worker needs it any more. */
  async stop(options: StopOptions): Promise<void> {
    const term = this.#term
    this.#term = null
    if (term !== null) term.isOver = true
    const companions = this.#companions.stop((error) => this.#engine.reportError(error, 'stop'))
    try {
      await this.#worker.stop(options)
    } finally {
      companions.workerStopped()
    }
    await companions.left
    if (term === null) return
    term.hasLeft = true
    try {
      await term.leave()
    } catch (error) {
      this.#engine.reportError(error, 'stop')
    }
  }
}

type Companion = Required<Pick<Plugin, 'whileStarted'>>

/** What plugins do beside the worker, from `start()` to `stop()`. */
export class Companions {
  readonly #all: Companion[] = []
  #started: { readonly durably: Durably; readonly term: StartedTerm; readonly end: () => void } | null = null
  #uninstalls: Uninstall[] = []

  /** One that comes late begins at once. */
  add(plugin: Plugin): void {
    if (plugin.whileStarted === undefined) return
    this.#all.push(plugin as Companion)
    if (this.#started === null) return
    const { durably, term } = this.#started
    this.#uninstalls.push(plugin.whileStarted(durably, term))
  }

  start(durably: Durably): void {
    if (this.#started !== null) return
    let end = () => {}
    const workerStopped = new Promise<void>((resolve) => {
      end = resolve
    })
    const term: StartedTerm = { workerStopped }
    this.#started = { durably, term, end }
    this.#uninstalls = this.#all.map((companion) => companion.whileStarted(durably, term))
  }

  /** The last one first. `onError` hears of those that fail. Answers how to tell that the worker has stopped. */
  stop(onError: (error: unknown) => void): { readonly left: Promise<void>; workerStopped(): void } {
    const uninstalls = this.#uninstalls
    const started = this.#started
    this.#started = null
    this.#uninstalls = []
    return { left: uninstallAll(uninstalls, onError), workerStopped: () => started?.end() }
  }
}

async function uninstallAll(uninstalls: readonly Uninstall[], onError: (error: unknown) => void): Promise<void> {
  for (const uninstall of [...uninstalls].reverse()) {
    try {
      await uninstall()
    } catch (error) {
      onError(error)
    }
  }
}
