import {
  addJobs,
  Admission,
  announceTrouble,
  createBodyScope,
  createPlugins,
  type DurablyOptions,
  type Engine,
  jobOf,
  type KnownJob,
  listJobs,
  longer,
  noJob,
  refuseBadLease,
  requireDurablyOptions,
  requireStopOptions,
  resolveOptions,
  type StopOptions,
} from '../engine'
import {
  ClosedError,
  createBreath,
  createEnvironment,
  createPatience,
  createReporter,
  handled,
  InvalidOptionError,
  onRejection,
  refuseUnknownOptions,
} from '../base'
import {
  createForks,
  createJobHandle,
  createPauses,
  createPublishing,
  createRunCommands,
  createRunDrafts,
  createRunReads,
  createSubscriptions,
  type JobHandle,
  type JobHandleParams,
  newRunOf,
  type Message,
  type Pauses,
  type Publishing,
  refuseInside,
  type RunForks,
  type RunCommands,
  type RunDrafts,
  type RunReads,
  type RunSubscriptions,
  runTransaction,
  TailReader,
  toTriggeredRun,
  type TriggerItem,
  Waits,
} from '../client'
import {
  createEmitter,
  defineJob,
  type DurablyEvent,
  type EventInput,
  type EventType,
  type JobContext,
  type JobDeclaration,
  type JobOptions,
  type JobRef,
  requireLabels,
  type StorableSchema,
  TRIGGER_OPTIONS,
  type TriggeredRun,
  type TriggerOptions,
} from '../job'
import { connect, type Parts } from './connect'
import { type DrainOptions, type DrainResult, Worker } from '../worker'
import { type Health, healthOf } from './health'
import { Migrating } from './migrating'
import { type Plugin, requireUsable, type Uninstall } from './plugin'
import { deadWorkerIn, type RecoverOptions } from './recover-options'
import type { EnqueueAnswer, NewRun, RunCommand, RunRecord, Storage } from '../port'
import { Takeover } from './takeover'
import { WorkerLead } from './worker-lead'

/** Jobs by the keys under which `register` gives their handles. */
export type JobRecord = Readonly<Record<string, JobDeclaration>>

/** The handle of each job, under its key. */
export type Handles<TJobs extends JobRecord> = {
  readonly [Key in keyof TJobs]: TJobs[Key] extends JobDeclaration<infer TName, infer TInput, infer TOutput>
    ? JobHandle<TName, TInput, TOutput>
    : never
}

/** The part of an instance that servers hand out: nothing of other tenants can be read or changed through it. */
export interface ScopedDurably
  extends RunReads,
    RunCommands,
    RunSubscriptions,
    RunForks,
    Publishing<Omit<Message, 'tenant'>>,
    RunTriggers<Omit<TriggerOptions, 'tenant'>> {}

/** Triggering jobs that need not be executed, nor registered, here. */
export interface RunTriggers<TOptions> {
  /** As `trigger` of the job's handle. */
  trigger<TInput, TOutput>(
    job: JobRef<TInput, TOutput>,
    payload: TInput,
    options?: TOptions,
  ): Promise<TriggeredRun<TOutput>>
  /**
   * A job by its name. One that is not registered here has no schema: its payload is stored as it is, its run without
   * the job's `timeout` and `version`, and whoever executes it gets what was given.
   */
  trigger(jobName: string, payload?: unknown, options?: TOptions): Promise<TriggeredRun>
}

/** One instance: jobs, a worker, and access to the database. */
export interface Durably
  extends RunReads,
    RunCommands,
    RunSubscriptions,
    RunForks,
    Publishing<Message>,
    RunTriggers<TriggerOptions>,
    Pauses {
  /** Creates or updates the tables. Call it at each start; many processes may at once. Triggers wait for it meanwhile. */
  migrate(): Promise<void>
  /** Defines a job, registers it and returns its handle. */
  defineJob<TName extends string, TInput, TPayload, TReturned, TOutput>(
    options: JobOptions<TName, TInput, TPayload> & { readonly output: StorableSchema<TReturned, TOutput> },
    execute: (ctx: JobContext, payload: TPayload) => TReturned | Promise<TReturned>,
  ): JobHandle<TName, TInput, TOutput>
  defineJob<TName extends string, TInput, TPayload, TOutput>(
    options: JobOptions<TName, TInput, TPayload> & { readonly output?: undefined },
    execute: (ctx: JobContext, payload: TPayload) => TOutput | Promise<TOutput>,
  ): JobHandle<TName, TInput, TOutput>
  /** Registers jobs defined, or only declared, as values; returns their handles under the same keys. */
  register<TJobs extends JobRecord>(jobs: TJobs): Handles<TJobs>
  /** Starts executing runs. Returns at once; trouble goes to `worker:error`. */
  start(): void
  /** Takes no more runs and waits for those in progress, or releases them after `timeout` ms. */
  stop(options?: StopOptions): Promise<void>
  /** Looks for runs now. Call it when a tab becomes visible or a machine resumes: leases are checked too. */
  wake(): void
  /** Executes what is due and returns: for serverless functions, cron and tests. */
  runUntilIdle(options?: DrainOptions): Promise<DrainResult>
  /**
   * A transaction on the database of durably, for rows of the application and runs that go with them
   * (`trigger(payload, { transaction })`). Everything else of durably waits on databases with one connection: await
   * nothing but the transaction in it.
   */
  transaction<T>(body: (transaction: unknown) => Promise<T>): Promise<T>
  /** Takes back the runs of a worker at once. The caller swears that no process with this id is alive. */
  recover(options: RecoverOptions): Promise<number>
  health(): Health
  /** The jobs that were defined, registered or declared here. */
  jobs(): readonly KnownJob[]
  /** Stops at once and closes the storage. Runs in progress are released. */
  close(): Promise<void>
  on<T extends EventType>(type: T, listener: (event: DurablyEvent<T>) => void): () => void
  emit(event: EventInput): void
  /** Errors of listeners and of the worker, with what it was doing. */
  onError(listener: (error: unknown, during: string) => void): () => void
  /** For plugins: trouble outside of a job becomes a `worker:error`, and goes to `onError` or the logger. */
  reportError(error: unknown, during: string): void
  use(plugin: Plugin): Durably
  scoped(scope: { readonly tenant: string }): ScopedDurably
  readonly storage: Storage
  /** For packages that create runs in writes of their own, such as schedules. */
  readonly drafts: RunDrafts
}

/** Creates an instance on a storage. It does nothing until `migrate()`, `start()` or a trigger. */
export function createDurably(options: DurablyOptions): Durably {
  return createInstance(options).durably
}

/** An instance, and what the task queue needs of it beside. */
export interface Instance {
  readonly durably: Durably
  /** A run as it will be stored, made within this call unless the schema of its job takes its time. */
  newRun(item: TriggerItem): NewRun | Promise<NewRun>
  /** Runs made by `newRun`, in no transaction of the caller's. */
  enqueue(runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]>
  trigger(items: readonly TriggerItem[]): Promise<readonly EnqueueAnswer[]>
}

export function createInstance(options: DurablyOptions): Instance {
  requireDurablyOptions(options)
  const reporter = createReporter(options.logger === undefined ? console : options.logger)
  const engine = createEngine(options, reporter.report)
  const worker = new Worker(engine)
  const lead = new WorkerLead(worker, engine)
  const [waits, tails] = [new Waits(engine), new TailReader(engine)]
  const uninstalls: Uninstall[] = []
  let closing: Promise<void> | null = null
  const isClosed = () => closing !== null
  const [migrating, takeover] = [new Migrating(), new Takeover(engine, () => durably.close())]
  const { enqueue, create, disconnect } = connect({ engine, worker, waits, tails, migrating, isClosed })

  const trigger: Trigger = async (items) => (await create(items)).map(toTriggeredRun)

  const access = (tenant?: string) => accessOf({ engine, worker, lead, tails, tenant })
  const all = access()
  const register = <TJobs extends JobRecord>(jobs: TJobs) => registerAll({ engine, trigger, waits, ...all }, jobs)

  const durably: Durably = {
    ...all,
    storage: engine.storage,
    drafts: createRunDrafts(engine, () => worker.wake(true)),
    trigger: triggerOf(engine, trigger),
    migrate: () => migrating.run(() => takeover.before(() => engine.storage.migrate())),
    defineJob: ((...definition: Parameters<typeof defineJob>) =>
      register({ job: defineJob(...definition) }).job) as Durably['defineJob'],
    register,
    start() {
      if (closing !== null) throw new ClosedError()
      void takeover.take()
      lead.start(durably)
    },
    stop: (stopOptions = {}) => handled(stopWorker({ engine, worker, lead, waits, tails }, stopOptions)),
    wake: () => worker.lookNow(),
    ...createPauses(engine, worker),
    runUntilIdle(drainOptions = {}) {
      if (closing !== null) return Promise.reject(new ClosedError())
      return refuseInside(engine, 'runUntilIdle()') ?? worker.drain(drainOptions)
    },
    transaction: (body) => runTransaction({ engine, body, isClosed, onCommitted: () => worker.wake(true) }),
    recover: async (named) => {
      const { workerId, crashed } = deadWorkerIn(named)
      return (await worker.recoverFrom(workerId, crashed)).length
    },
    health: () => healthOf(engine, worker),
    jobs: () => listJobs(engine),
    close() {
      takeover.end()
      closing ??= closeAll({ engine, worker, lead, waits, tails, before: [disconnect, ...uninstalls.reverse()] })
      return closing
    },
    on: (type, listener) => engine.events.on(type, listener),
    emit: (event) => engine.events.emit(event),
    onError: (listener) => reporter.listen(listener),
    reportError: (error, during) => announceTrouble(engine, error, during),
    use(plugin) {
      const uninstall = addPlugin({ plugin, durably, engine, lead, given: options })
      if (typeof uninstall === 'function') uninstalls.push(uninstall)
      return durably
    },
    scoped(scope) {
      const tenant = tenantIn(scope)
      return { ...access(tenant), trigger: triggerOf(engine, trigger, { tenant }) }
    },
  }
  return { durably, newRun: (item) => newRunOf(engine, item), enqueue, trigger: create }
}

interface AccessParams extends Pick<Parts, 'engine' | 'worker' | 'tails'> {
  readonly lead: WorkerLead
  readonly tenant: string | undefined
}

/** What servers hand out too, of everybody or of one tenant. */
function accessOf({ engine, worker, lead, tails, tenant }: AccessParams) {
  // A run in our own hands hears of it with the answer to its next renewal.
  const onSignal = (runId: string) => (worker.holds(runId) ? worker.lookAt(runId) : worker.wake())
  return {
    ...createRunReads(engine, lead, tenant),
    ...createSubscriptions({ engine, tails, tenant }),
    ...createPublishing(engine, tenant),
    ...createForks({ engine, tenant, onForked: () => worker.wake() }),
    ...createRunCommands({ engine, tenant, onApplied: (kind, run) => tellWorker(worker, kind, run), onSignal }),
  }
}

/** The handles, under the keys of the jobs. */
function registerAll<TJobs extends JobRecord>(params: Omit<JobHandleParams, 'job'>, jobs: TJobs): Handles<TJobs> {
  addJobs(params.engine, Object.values(jobs))
  const { engine, trigger, waits, getRun, getRuns } = params
  const handleOf = (job: JobDeclaration) => createJobHandle({ engine, job, trigger, waits, getRun, getRuns })
  return Object.fromEntries(Object.entries(jobs).map(([key, job]) => [key, handleOf(job)])) as Handles<TJobs>
}

function tenantIn(scope: Parameters<Durably['scoped']>[0]): string {
  refuseUnknownOptions('scoped()', scope, { tenant: true })
  // A session without a tenant must not see everybody's runs.
  if (typeof scope.tenant !== 'string') throw new InvalidOptionError('scoped() needs a tenant that is a string.')
  return scope.tenant
}

interface CloseParams extends Parts {
  readonly lead: WorkerLead
  readonly before: readonly Uninstall[]
}

async function closeAll({ engine, worker, lead, waits, tails, before }: CloseParams): Promise<void> {
  waits.close(new ClosedError())
  tails.close(new ClosedError())
  await lead.stop({ timeout: 0 })
  worker.close()
  for (const task of before) {
    try {
      await task()
    } catch (error) {
      engine.reportError(error, 'close')
    }
  }
  await engine.storage.close?.()
}

async function stopWorker(parts: Omit<CloseParams, 'before'>, options: StopOptions): Promise<void> {
  const { engine, worker, lead, waits, tails } = parts
  requireStopOptions(options)
  // Given back after a time-out, the run would be taken up again and come to the same call.
  await (refuseInside(engine, 'stop()') ?? lead.stop(options))
  if (worker.state === 'stopped' && waits.isIdle && tails.isIdle) engine.storage.watch?.rest?.()
}

interface AddPluginParams {
  readonly plugin: Plugin
  readonly durably: Durably
  readonly engine: Engine
  readonly lead: WorkerLead
  readonly given: DurablyOptions
}

/** Refused as a whole, or added as a whole. */
function addPlugin({
  plugin,
  durably,
  engine,
  lead,
  given,
}: AddPluginParams): ReturnType<NonNullable<Plugin['install']>> {
  requireUsable(engine.storage, plugin)
  lead.requireFree(plugin)
  const leaseMs = leaseWith(plugin, engine, given)
  const labels =
    plugin.workerLabels === undefined ? null : requireLabels(plugin.workerLabels, `Plugin "${plugin.name}"`)
  const uninstall = plugin.install?.(durably)
  onRejection(uninstall, (error) => engine.reportError(error, `install of plugin "${plugin.name}"`))
  engine.plugins.add(plugin)
  if (labels !== null) engine.admission.labels = { ...engine.admission.labels, ...labels }
  lead.add(plugin)
  engine.options.leaseMs = leaseMs
  return uninstall
}

/** The application's own choice stands; of several plugins the longest. */
function leaseWith({ staleThreshold }: Plugin, { options: current, plugins }: Engine, given: DurablyOptions): number {
  if (staleThreshold !== undefined) refuseBadLease(staleThreshold, current)
  return given.staleThreshold ?? longer(plugins.staleThreshold(), staleThreshold) ?? current.leaseMs
}

function tellWorker(worker: Worker, kind: RunCommand['kind'], run: RunRecord): void {
  if (kind === 'cancel' && run.status === 'running') worker.cancelRun(run)
  else if (run.status === 'pending') worker.wake()
}

type Trigger = (items: readonly TriggerItem[]) => Promise<TriggeredRun[]>

/** `fixed` are the options that the caller cannot choose. */
function triggerOf(engine: Engine, trigger: Trigger, fixed?: Pick<TriggerOptions, 'tenant'>): Durably['trigger'] {
  return async (given: string | { readonly name: string }, payload?: unknown, options: TriggerOptions = {}) => {
    const job = jobOf(engine, given)
    if (job === null) throw noJob(Object(given).name)
    if (fixed !== undefined) refuseUnknownOptions('trigger()', options, TRIGGER_OPTIONS)
    const [run] = await trigger([{ job, payload, options: fixed === undefined ? options : { ...options, ...fixed } }])
    return run as TriggeredRun<never>
  }
}

function createEngine(options: DurablyOptions, reportError: Engine['reportError']): Engine {
  const environment = createEnvironment(options.environment)
  const jobs: Engine['jobs'] = new Map()
  const bodyScope: Engine['bodyScope'] = createBodyScope()
  return {
    storage: options.storage,
    environment,
    options: resolveOptions(options, environment),
    jobs,
    declared: new Map(),
    admission: new Admission(jobs, environment.clock),
    plugins: createPlugins(),
    bodyScope,
    events: createEmitter({
      clock: environment.clock,
      outside: bodyScope.outside,
      onListenerError: (error, type) => reportError(error, `listener of ${type}`),
    }),
    breathe: createBreath(environment.clock),
    patience: createPatience(environment.clock),
    reportError,
    openTransactions: new WeakMap(),
    trouble: null,
    parkedJobs: new Set(),
  }
}
