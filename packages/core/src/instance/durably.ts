import {
  addJobs,
  Admission,
  announceTrouble,
  createBodyScope,
  createPlugins,
  type DurablyOptions,
  type Engine,
  listJobs,
  longer,
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
  refuseBadText,
  requireLabels,
  refuseUnknownOptions,
} from '../base'
import {
  type Actor,
  createAuditReads,
  createForks,
  createJobHandle,
  createPauses,
  createPublishing,
  createRunCommands,
  createRunDrafts,
  createRunReads,
  createSettings,
  createSubscriptions,
  type JobHandleParams,
  newRunOf,
  purgeAudit,
  requireActor,
  refuseInside,
  runTransaction,
  TailReader,
  toTriggeredRun,
  type TriggerItem,
  Waits,
} from '../client'
import { createEmitter, defineJob, type JobDeclaration } from '../job'
import { connect, type Parts } from './connect'
import { Worker } from '../worker'
import { healthOf } from './health'
import { Migrating } from './migrating'
import { type Plugin, requireUsable, type Uninstall } from './plugin'
import { deadWorkerIn } from './recover-options'
import type { EnqueueAnswer, NewRun, RunCommand, RunRecord } from '../port'
import { createTriggers, type Trigger } from './run-triggers'
import { Takeover } from './takeover'
import { WorkerLead } from './worker-lead'
import type { Durably, Handles, JobRecord } from './api'

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
  const [waits, tails, settings] = [new Waits(engine), new TailReader(engine), createSettings(engine)]
  const worker = new Worker(engine, settings)
  const lead = new WorkerLead(worker, engine)
  const uninstalls: Uninstall[] = []
  let closing: Promise<void> | null = null
  const isClosed = () => closing !== null
  const [migrating, takeover] = [new Migrating(), new Takeover(engine, () => durably.close())]
  const { enqueue, create, disconnect } = connect({ engine, worker, waits, tails, migrating, isClosed })

  const trigger: Trigger = async (items) => (await create(items)).map(toTriggeredRun)

  const access = (tenant?: string, as?: Actor) => accessOf({ engine, worker, lead, tails, tenant, as })
  const all = access()
  const register = <TJobs extends JobRecord>(jobs: TJobs) => registerAll({ engine, trigger, waits, ...all }, jobs)

  const durably: Durably = {
    ...all,
    storage: engine.storage,
    settings,
    purgeAudit: (purge) => purgeAudit(engine, purge),
    drafts: createRunDrafts(engine, () => worker.wake(true)),
    ...createTriggers(engine, trigger),
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
    scoped: ((scope) => {
      const { tenant, as } = scopeIn(scope)
      return {
        ...access(tenant, as),
        ...createTriggers(engine, trigger, tenant === undefined ? undefined : { tenant }),
      }
    }) as Durably['scoped'],
  }
  return { durably, newRun: (item) => newRunOf(engine, item), enqueue, trigger: create }
}

interface AccessParams extends Pick<Parts, 'engine' | 'worker' | 'tails'> {
  readonly lead: WorkerLead
  readonly tenant: string | undefined
  readonly as: Actor | undefined
}

/** What servers hand out too, of everybody or of one tenant. */
function accessOf({ engine, worker, lead, tails, tenant, as }: AccessParams) {
  // A run in our own hands hears of it with the answer to its next renewal.
  const onSignal = (runId: string) => (worker.holds(runId) ? worker.lookAt(runId) : worker.wake())
  return {
    ...createRunReads(engine, lead, tenant),
    ...createSubscriptions({ engine, tails, tenant }),
    ...createAuditReads(engine, tenant),
    ...createPublishing(engine, tenant),
    ...createForks({ engine, tenant, as, onForked: () => worker.wake() }),
    ...createRunCommands({ engine, tenant, as, onApplied: (kind, run) => tellWorker(worker, kind, run), onSignal }),
  }
}

/** The handles, under the keys of the jobs. */
function registerAll<TJobs extends JobRecord>(params: Omit<JobHandleParams, 'job'>, jobs: TJobs): Handles<TJobs> {
  addJobs(params.engine, Object.values(jobs))
  const { engine, trigger, waits, getRun, getRuns } = params
  const handleOf = (job: JobDeclaration) => createJobHandle({ engine, job, trigger, waits, getRun, getRuns })
  return Object.fromEntries(Object.entries(jobs).map(([key, job]) => [key, handleOf(job)])) as Handles<TJobs>
}

interface Scoped {
  readonly tenant?: string
  readonly as?: Actor | undefined
}

function scopeIn(scope: Scoped): Scoped {
  refuseUnknownOptions('scoped()', scope, { tenant: true, as: true })
  if (scope.as !== undefined) requireActor(scope.as)
  if (scope.as !== undefined && !('tenant' in scope)) return scope
  // A session without a tenant must not see everybody's runs.
  if (typeof scope.tenant !== 'string') throw new InvalidOptionError('scoped() needs a tenant that is a string.')
  refuseBadText('tenant', scope.tenant)
  return scope
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
