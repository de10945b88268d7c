import { isDeclaration, type JobDeclaration, type JobDefinition, namedJob, refuseChain } from '../job'
import type { Engine } from './engine'
import { DuplicateJobError, InvalidOptionError, NotFoundError, type StandardSchema } from '../base'
import { capability } from '../port'

/** What an instance executes, and what it only triggers and reads. */
type KnownJobs = Pick<Engine, 'jobs' | 'declared'>

/** A job, by what somebody has of it. */
export type NamedJob = { readonly name: string }

/** All of them or none. A declaration beside the definition of the same job is one job: the definition counts. */
export function addJobs(
  { jobs, declared, storage }: KnownJobs & Pick<Engine, 'storage'>,
  given: readonly JobDeclaration[],
): void {
  const added = { jobs: new Map<string, JobDefinition>(), declared: new Map<string, JobDeclaration>() }
  for (const job of given) {
    if (!isDeclaration(job)) throw new InvalidOptionError('register() needs jobs made by defineJob() or declareJob().')
    if (!isDefinition(job)) addOnce(declared, added.declared, job)
    else {
      if (job.scope === 'database') capability(storage, 'limits', `Job "${job.name}" with scope 'database'`)
      if (job.placement !== null) capability(storage, 'cluster', `Job "${job.name}" with a placement`)
      addOnce(jobs, added.jobs, job)
    }
  }
  requireHandlers(new Map([...jobs, ...added.jobs]))
  for (const [name, job] of added.jobs) jobs.set(name, job)
  for (const { onFailure } of added.jobs.values()) if (onFailure !== null) addHandler({ jobs, declared }, onFailure)
  for (const [name, job] of added.declared) declared.set(name, job)
}

/** What is registered here counts, then what the caller brings; `null` for a handle of a job that is not known here. */
export function jobOf({ jobs, declared }: KnownJobs, job: string | NamedJob): JobDeclaration | null {
  const name = typeof job === 'string' ? job : job?.name
  const registered = jobs.get(name) ?? declared.get(name)
  if (registered !== undefined) return registered
  if (typeof job === 'string') return namedJob(job)
  return isDeclaration(job) ? job : null
}

function isDefinition(job: JobDeclaration): job is JobDefinition {
  return typeof (job as Partial<JobDefinition>).execute === 'function'
}

/** What a handler's name stands for is the job that is registered under it. */
function requireHandlers(all: ReadonlyMap<string, JobDefinition>): void {
  for (const { name, onFailure } of all.values()) {
    if (onFailure !== null) refuseChain(`Job "${name}"`, all.get(onFailure.name) ?? onFailure)
  }
}

/** Who registers a job executes what its failures call, unless that is only declared. */
function addHandler({ jobs, declared }: KnownJobs, handler: JobDeclaration): void {
  if (jobs.has(handler.name)) return
  if (isDefinition(handler)) jobs.set(handler.name, handler)
  else declared.set(handler.name, handler)
}

function addOnce<T extends JobDeclaration>(known: ReadonlyMap<string, T>, added: Map<string, T>, job: T): void {
  const other = known.get(job.name) ?? added.get(job.name) ?? job
  if (other !== job) throw new DuplicateJobError(job.name)
  added.set(job.name, job)
}

export function noJob(jobName: unknown): NotFoundError {
  return new NotFoundError(`There is no job "${String(jobName)}" on this instance.`)
}

/** A job of this instance. */
export interface KnownJob {
  readonly name: string
  readonly version: string | null
  /** False for one that is only declared here. */
  readonly isExecutedHere: boolean
  readonly input: StandardSchema
}

/** By name. */
export function listJobs({ jobs, declared }: Engine): readonly KnownJob[] {
  const all = new Map([...declared, ...jobs])
  const known = [...all.values()].map(({ name, version, input }) => {
    return { name, version, isExecutedHere: jobs.has(name), input }
  })
  return known.sort((a, b) => (a.name < b.name ? -1 : 1))
}
