import type { KnownJob, StopOptions } from '../engine'
import type {
  Actor,
  AuditPurge,
  AuditReads,
  JobHandle,
  Message,
  Pauses,
  Publishing,
  RunCommands,
  RunDrafts,
  RunForks,
  RunReads,
  RunSubscriptions,
  Settings,
} from '../client'
import type {
  DurablyEvent,
  EventInput,
  EventType,
  JobContext,
  JobDeclaration,
  JobOptions,
  StorableSchema,
  TriggerOptions,
} from '../job'
import type { Storage } from '../port'
import type { DrainOptions, DrainResult } from '../worker'
import type { Health } from './health'
import type { Plugin } from './plugin'
import type { RunTriggers } from './run-triggers'
import type { RecoverOptions } from './recover-options'

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
    AuditReads,
    Publishing<Omit<Message, 'tenant'>>,
    RunTriggers<Omit<TriggerOptions, 'tenant'>> {}

/** An instance in somebody's name. */
export interface AttributedDurably
  extends RunReads,
    RunCommands,
    RunSubscriptions,
    RunForks,
    AuditReads,
    Publishing<Message>,
    RunTriggers<TriggerOptions> {}

/** One instance: jobs, a worker, and access to the database. */
export interface Durably
  extends RunReads,
    RunCommands,
    RunSubscriptions,
    RunForks,
    AuditReads,
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
  /**
   * The part of it that is a tenant's, and that somebody uses: what is done to runs through it leaves who did it, for
   * `getAudit()`, where `as` says so.
   */
  scoped(scope: { readonly tenant: string; readonly as?: Actor | undefined }): ScopedDurably
  /** For somebody who may do everything with the runs of everybody. */
  scoped(scope: { readonly as: Actor }): AttributedDurably
  /** What is set for all processes on the database. */
  readonly settings: Settings
  /** Removes old entries of the audit; returns how many. */
  purgeAudit(options: AuditPurge): Promise<number>
  readonly storage: Storage
  /** For packages that create runs in writes of their own, such as schedules. */
  readonly drafts: RunDrafts
}
