import { type JobDefinition, type LimitScope, requireScope } from '../job'
import { type Engine, noJob } from '../engine'
import { refuseUnknownOptions } from '../base'
import { capability } from '../port'
import { type Actor, notedBy } from './acting'

/** For whom a job is paused: `worker`, this instance alone, as without it; `database`, everybody. */
export type PauseOptions<TScope extends LimitScope = LimitScope> = TScope extends 'database'
  ? { readonly scope: 'database' /** Who does it, for `getAudit()`. */; readonly as?: Actor | undefined }
  : { readonly scope?: 'worker' | undefined }

/** Which jobs begin no runs, here or anywhere. */
export interface Pauses {
  /**
   * This instance claims no more runs of the job, until `resumeJob()`: what it has, or is claiming at this moment, goes
   * on; others can be triggered and wait. Other processes are not told.
   */
  pauseJob(jobName: string, options?: PauseOptions<'worker'>): void
  /**
   * With `scope: 'database'` nobody claims runs of the job, in whichever process and after whatever restarts, until
   * `resumeJob()` with the same scope. A job that is only declared here will do.
   */
  pauseJob(jobName: string, options: PauseOptions<'database'>): Promise<void>
  /** Takes runs of the job again, at once; `scope: 'database'` ends the pause that holds for all. */
  resumeJob(jobName: string, options?: PauseOptions<'worker'>): void
  resumeJob(jobName: string, options: PauseOptions<'database'>): Promise<void>
  /** Jobs that are paused for all, by `pauseJob(name, { scope: 'database' })`. */
  pausedJobs(): Promise<readonly string[]>
}

interface AnyPause {
  readonly scope?: LimitScope | undefined
  readonly as?: Actor | undefined
}

export function createPauses(engine: Engine, worker: { wake(): void }): Pauses {
  const change = (call: 'pause' | 'resume', jobName: string, options: AnyPause = {}) => {
    const name = `${call}Job()`
    const { scope = 'worker', as } = options
    refuseUnknownOptions(name, options, scope === 'database' ? { scope: true, as: true } : { scope: true })
    requireScope(scope, name)
    if (scope === 'database') return everywhere(call, jobName, as)
    engine.admission[call](registered(engine, jobName).name)
    if (call === 'resume') worker.wake()
    return undefined
  }
  const everywhere = async (call: 'pause' | 'resume', jobName: string, as: Actor | undefined) => {
    const { name } = engine.jobs.get(jobName) ?? engine.declared.get(jobName) ?? raise(noJob(jobName))
    await capability(engine.storage, 'limits', `${call}Job() with scope 'database'`)[call](
      name,
      notedBy(engine, `${call}Job`, as).audit,
    )
    if (call === 'resume') worker.wake()
  }
  return {
    pauseJob: ((jobName, options) => change('pause', jobName, options)) as Pauses['pauseJob'],
    resumeJob: ((jobName, options) => change('resume', jobName, options)) as Pauses['resumeJob'],
    pausedJobs: async () => capability(engine.storage, 'limits', 'pausedJobs()').paused(),
  }
}

function registered({ jobs }: Engine, jobName: string): JobDefinition {
  return jobs.get(jobName) ?? raise(noJob(jobName))
}

function raise(error: Error): never {
  throw error
}
