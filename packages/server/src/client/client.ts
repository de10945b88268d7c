import { refuseUnknownOptions, type OptionNames } from '@coji/durably-core/extend'
import type {
  AuditReads,
  BatchTriggerInput,
  JobDeclaration,
  JobRecord,
  Run,
  RunFilter,
  RunReads,
  RunSubscriptions,
  TriggeredRun,
  TriggerOptions,
} from '@coji/durably-core'
import type { BulkResult } from '../bulk'
import type { BulkBody, BulkPreview, JobList, Me, WaitPage } from '../wire'
import type { MessageCounts, MessagePage, SchedulePage, ServedSchedule, WorkerList } from '../wire'
import { createCommands, withPayload, type ClientCommands } from './commands'
import { subscribe, watchRuns, type RunChange } from './follow'
import { createReads, type CountReads } from './reads'
import { createTransport, type TransportOptions } from './transport'
import { createWaits, type ClientWaits } from './wait'

/** Where the server is. */
export type ClientOptions = TransportOptions

/** How a run is triggered over HTTP: whose run it is, the server says. */
export type ClientTriggerOptions = Omit<TriggerOptions, 'tenant' | 'transaction'>

/** Which runs a bulk action is about: those that meet every condition. */
export type BulkFilter = Omit<RunFilter, 'limit' | 'cursor' | 'waitsForRetry' | 'parked'>

/** Which of the runs that wait for somebody. */
export interface WaitsQuery extends Pick<RunFilter, 'jobName' | 'tenant' | 'labels' | 'limit'> {
  /** The `next` of the page before. */
  readonly cursor?: string | undefined
}

/** Whose schedule or messages. */
export interface ScheduleScope {
  readonly tenant?: string | undefined
}

/** Which schedules. */
export interface ScheduleListQuery extends ScheduleScope {
  readonly jobName?: string | undefined
  /** Those whose runs get each of these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Those that are paused, or those that are not. */
  readonly paused?: boolean | undefined
  /** Those that have no instant any more, or those that have. */
  readonly ended?: boolean | undefined
  readonly limit?: number | undefined
  /** The `next` of the page before. */
  readonly cursor?: string | undefined
}

/** Which messages. */
export interface MessageListQuery extends ScheduleScope {
  readonly type?: string | readonly string[] | undefined
  /** Delivered, and no job wanted it; or not so. */
  readonly unwanted?: boolean | undefined
  readonly from?: string | undefined
  readonly before?: string | undefined
  readonly limit?: number | undefined
  /** The `next` of the page before. */
  readonly cursor?: string | undefined
}

/** Which delivered messages: those that meet every condition, and one beside the tenant has to be there. */
export type ReplayFilter = Omit<MessageListQuery, 'limit' | 'cursor'>

/** The names of jobs that are known. */
export type NameOf<TJobs extends JobRecord> = TJobs[keyof TJobs]['name']
/** The job that has the name; with jobs that are not known by name any of them. */
export type Named<TJob extends JobDeclaration, TName> = TJob extends unknown
  ? TName extends TJob['name']
    ? TJob
    : never
  : never

/** What goes into the job of that name, and what comes out. */
export type TypesOf<TJobs extends JobRecord, TName> = NonNullable<Named<TJobs[keyof TJobs], TName>['types']>

/** The run API of the engine, over HTTP. */
export interface DurablyClient<TJobs extends JobRecord = JobRecord>
  extends RunReads,
    AuditReads,
    CountReads,
    ClientCommands,
    RunSubscriptions,
    ClientWaits {
  /** Triggers a job by its name. */
  trigger<TName extends NameOf<TJobs>>(
    jobName: TName,
    payload: TypesOf<TJobs, TName>['input'],
    options?: ClientTriggerOptions,
  ): Promise<TriggeredRun<TypesOf<TJobs, TName>['output']>>
  /** Up to 1,000 runs of a job, all or none; the answers are in the order of the items. */
  batchTrigger<TName extends NameOf<TJobs>>(
    jobName: TName,
    items: readonly BatchTriggerInput<TypesOf<TJobs, TName>['input'], ClientTriggerOptions>[],
  ): Promise<TriggeredRun<TypesOf<TJobs, TName>['output']>[]>
  /** Says which runs change, so that what is shown of them can be read anew. Ends with the function that is returned. */
  watchRuns(listener: (change: RunChange) => void): () => void
  /** The runs that wait for somebody, newest first, and the signals they wait for. */
  waits(query?: WaitsQuery): Promise<WaitPage>
  /** Schedules, by tenant and name. */
  schedules(query?: ScheduleListQuery): Promise<SchedulePage>
  /** It fires no more until it is resumed. */
  pauseSchedule(name: string, options?: ScheduleScope & { readonly because?: string }): Promise<ServedSchedule>
  /** It fires again from now on. */
  resumeSchedule(name: string, scope?: ScheduleScope): Promise<ServedSchedule>
  /** A run of it at once. Answers its id. */
  runSchedule(name: string, scope?: ScheduleScope): Promise<{ readonly id: string }>
  /** Messages, the oldest first. */
  messages(query?: MessageListQuery): Promise<MessagePage>
  /** How many messages there are. */
  messageCounts(scope?: ScheduleScope): Promise<MessageCounts>
  /** Sends delivered messages out anew: each job that wants them now gets a new run of each. Answers how many these are. */
  replayMessages(filter: ReplayFilter): Promise<number>
  /** The workers of the cluster, and who leads it. */
  workers(): Promise<WorkerList>
  /** The jobs that the server knows. */
  jobs(): Promise<JobList['jobs']>
  /** How many runs `bulk()` would be about at present. */
  previewBulk(action: BulkBody['action'], filter: BulkFilter): Promise<BulkPreview>
  /** Does it to all runs that meet the conditions and are there already. The run that is answered has the progress. */
  bulk(action: BulkBody['action'], filter: BulkFilter): Promise<Run<BulkResult>>
  /** Who one is for the server, and what one may do. */
  me(): Promise<Me>
}

const OPTIONS: OptionNames<ClientOptions> = { url: true, fetch: true, headers: true }

/**
 * A client of `createDurablyHandler`. It has the run API of the engine; its subscriptions reconnect by themselves.
 *
 * ```ts
 * const durably = createDurablyClient<typeof jobs>({ url: '/api/durably' })
 * const run = await durably.trigger('resize', { width: 300 })
 * for await (const event of durably.subscribe(run.id)) console.log(event.type)
 * ```
 */
export function createDurablyClient<TJobs extends JobRecord = JobRecord>(options: ClientOptions): DurablyClient<TJobs> {
  refuseUnknownOptions('createDurablyClient()', options, OPTIONS)
  const transport = createTransport(options)
  const reads = createReads(transport)
  const trigger = async (jobName: string, payload: unknown, triggerOptions: ClientTriggerOptions = {}) => {
    const options = toOptions(triggerOptions)
    const body = withPayload({ jobName, options }, payload, `The payload of job "${jobName}"`)
    return transport.write<TriggeredRun>('POST', '/runs', body)
  }
  const batchTrigger = async (jobName: string, items: readonly BatchTriggerInput<unknown, ClientTriggerOptions>[]) => {
    const runs = items.map(({ payload, options = {} }) =>
      withPayload({ options: toOptions(options) }, payload, `The payload of job "${jobName}"`),
    )
    const body = `{"jobName":${JSON.stringify(jobName)},"runs":[${runs.join()}]}`
    return (await transport.write<{ runs: TriggeredRun[] }>('POST', '/runs/batch', body)).runs
  }
  return {
    ...reads,
    ...createCommands(transport),
    ...createWaits(reads),
    subscribe: (id, following) => subscribe(transport, id, following),
    trigger: trigger as DurablyClient<TJobs>['trigger'],
    batchTrigger: batchTrigger as DurablyClient<TJobs>['batchTrigger'],
    watchRuns: (listener) => watchRuns(transport, listener),
    waits: (query) => transport.get<WaitPage>('/waits', { ...query }),
    schedules: (query) => transport.get<SchedulePage>('/schedules', { ...query }),
    pauseSchedule: (name, given) => transport.write('POST', '/schedules/pause', JSON.stringify({ name, ...given })),
    resumeSchedule: (name, scope) => transport.write('POST', '/schedules/resume', JSON.stringify({ name, ...scope })),
    runSchedule: (name, scope) => transport.write('POST', '/schedules/run', JSON.stringify({ name, ...scope })),
    messages: (query) => transport.get<MessagePage>('/inbox', { ...query }),
    messageCounts: (scope) => transport.get<MessageCounts>('/inbox/stats', { ...scope }),
    async replayMessages(filter) {
      const body = JSON.stringify(filter)
      return (await transport.write<{ replayed: number }>('POST', '/inbox/replay', body)).replayed
    },
    workers: () => transport.get<WorkerList>('/workers'),
    jobs: async () => (await transport.get<JobList>('/jobs')).jobs,
    previewBulk: (action, filter) => transport.write('POST', '/bulk/preview', JSON.stringify({ action, filter })),
    bulk: (action, filter) => transport.write('POST', '/bulk', JSON.stringify({ action, filter })),
    me: () => transport.get<Me>('/me'),
  }
}

function toOptions({ runAt, ...others }: ClientTriggerOptions): object {
  return { ...others, runAt: runAt instanceof Date ? runAt.toISOString() : runAt }
}
