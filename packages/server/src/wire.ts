/**
 * The contract between server and client: everything that goes over the wire, as schemas from which the types, the checks
 * and the OpenAPI document are made. The client, the hooks and the dashboard import the types and nothing else of it.
 */
import { RUN_STATUSES } from '@coji/durably-core'
import type {
  AuditEntry,
  ForkOptions,
  Log,
  Percentiles,
  Run,
  RunFields,
  RunFilter,
  StatisticsCounts,
  StatisticsFilter,
  Step,
  TriggerOptions,
} from '@coji/durably-core'
import { z } from 'zod'
import { type doneSchema, eventSchema, type runHintSchema } from './wire-events'
import {
  count,
  flag,
  instant,
  labelFilter,
  oneOrMany,
  progress,
  text,
  value,
  waitingFor,
  wholeNumber,
} from './wire-parts'

type Shape<T> = Readonly<Record<keyof T, z.ZodType>>

const errorDetail = z.looseObject({ name: z.string() }).nullable()
const labels = z.record(z.string(), z.string())

const runFields = {
  id: z.string(),
  jobName: z.string(),
  jobVersion: z.string().nullable(),
  tenant: z.string(),
  payload: value,
  labels,
  idempotencyKey: z.string().nullable(),
  concurrencyKey: z.string().nullable(),
  concurrencyLimit: count,
  priority: z.int(),
  attempt: count,
  attemptBase: count,
  crashCount: count,
  currentStepIndex: count,
  progress: progress.nullable(),
  availableAt: instant.nullable(),
  waitingFor: waitingFor.nullable(),
  ownerId: z.string().nullable(),
  leaseUntil: instant.nullable(),
  heartbeatAt: instant.nullable(),
  continuationState: z.enum(['NONE', 'CONFIRMING']),
  cancelRequestedAt: instant.nullable(),
  deadlineAt: instant.nullable(),
  errorDetail,
  parentRunId: z.string().nullable(),
  forkedFrom: z.string().nullable(),
  scheduleId: z.string().nullable(),
  scheduledFor: z.string().nullable(),
  version: count,
  lastEventSequence: count,
  createdAt: instant,
  updatedAt: instant,
  startedAt: instant.nullable(),
  finishedAt: instant.nullable(),
} satisfies Shape<RunFields>

const runShape = {
  ...runFields,
  status: z.enum(RUN_STATUSES),
  output: value,
  error: z.string().nullable(),
} satisfies Shape<Run>

export const runSchema = z.strictObject(runShape).meta({ id: 'Run' })
export const triggeredRunSchema = z
  .strictObject({ ...runShape, deduplicated: z.boolean() })
  .meta({ id: 'TriggeredRun' })

const stepShape = {
  name: z.string(),
  index: count,
  kind: z.string(),
  status: z.enum(['completed', 'failed', 'started', 'waiting']),
  attempt: count,
  output: value,
  error: z.string().nullable(),
  errorDetail,
  checkpoint: value,
  startedAt: instant,
  completedAt: instant.nullable(),
  dueAt: instant.nullable(),
} satisfies Shape<Step>

export const stepSchema = z.strictObject(stepShape).meta({ id: 'Step' })

const logShape = {
  id: z.string(),
  runId: z.string(),
  stepName: z.string().nullable(),
  level: z.enum(['info', 'warn', 'error']),
  message: z.string(),
  data: value,
  timestamp: instant,
} satisfies Shape<Log>

export const logSchema = z.strictObject(logShape).meta({ id: 'Log' })

/** Runs newest first; `next` is the `cursor` of the page after it, `null` when this is the last. */
export const runPageSchema = z.strictObject({ runs: z.array(runSchema), next: z.string().nullable() })
export const triggeredListSchema = z.strictObject({ runs: z.array(triggeredRunSchema) })
export const stepListSchema = z.strictObject({ steps: z.array(stepSchema) })
export const logListSchema = z.strictObject({ logs: z.array(logSchema), next: z.string().nullable() })
export const eventListSchema = z.strictObject({ events: z.array(eventSchema), next: count.nullable() })
export const explanationSchema = z.strictObject({ explanation: z.string() })

/** Runs that wait for somebody, and the signals they wait for. */
export const waitListSchema = z.strictObject({
  waits: z.array(
    z.strictObject({
      run: runSchema,
      signals: z.array(
        z.strictObject({ stepName: z.string(), signalName: z.string(), since: instant, dueAt: instant.nullable() }),
      ),
    }),
  ),
  next: z.string().nullable(),
})

/** Jobs that the server knows. `input` is the JSON Schema of what they take, where their schema tells. */
export const jobListSchema = z.strictObject({
  jobs: z.array(
    z.strictObject({
      name: z.string(),
      version: z.string().nullable(),
      isExecutedHere: z.boolean(),
      input: z.record(z.string(), z.unknown()).nullable(),
    }),
  ),
})

/** How many runs there are of each status; of the pending ones, how many wait for a retry or are parked. `upTo`: counted no further. */
export const countsSchema = z
  .strictObject({
    ...(Object.fromEntries(RUN_STATUSES.map((status) => [status, count])) as Record<
      (typeof RUN_STATUSES)[number],
      typeof count
    >),
    waitsForRetry: count,
    parked: count,
    upTo: count,
  })
  .meta({ id: 'Counts' })

const percentiles = z
  .strictObject({ p50: z.number(), p95: z.number(), p99: z.number() } satisfies Shape<Percentiles>)
  .nullable()

const statisticsCounts = {
  started: count,
  completed: count,
  failed: count,
  timedOut: count,
  cancelled: count,
  duration: percentiles,
  queueLatency: percentiles,
} satisfies Shape<StatisticsCounts>

/** What was counted by the hour or day; `countedUntil` is `null` where nobody counts. */
export const statisticsSchema = z
  .strictObject({
    countedUntil: instant.nullable(),
    points: z.array(z.strictObject({ at: instant, ...statisticsCounts })),
    total: z.strictObject(statisticsCounts),
  })
  .meta({ id: 'Statistics' })

/** What one may do over HTTP. `read` is everything that changes nothing. */
export const ACTIONS = [
  'read',
  'trigger',
  'cancel',
  'retry',
  'signal',
  'fork',
  'unpark',
  'delete',
  'audit',
  'schedule',
  'replay',
] as const
/** One of `ACTIONS`. */
export type Action = (typeof ACTIONS)[number]

/** Who asks, and what they may do. `tenant` is `null` for those who see everybody's runs. */
export const meSchema = z
  .strictObject({
    actor: z.string().nullable(),
    tenant: z.string().nullable(),
    actions: z.array(z.enum(ACTIONS)),
    /** Whether events of runs are stored, so that runs can be followed. */
    history: z.boolean(),
    /** Whether schedules, the inbox and workers are served; workers only to those who see the runs of all. */
    schedules: z.boolean(),
    inbox: z.boolean(),
    workers: z.boolean(),
    /** Whether runs can be changed by filter. */
    bulk: z.boolean(),
  })
  .meta({ id: 'Me' })

const auditShape = {
  id: z.string(),
  at: instant,
  tenant: z.string(),
  actor: z.string(),
  action: z.string(),
  targetKind: z.enum(['run', 'runs', 'job', 'settings', 'schedule', 'messages']),
  target: z.string(),
  before: value,
  after: value,
} satisfies Shape<AuditEntry>

export const auditListSchema = z.strictObject({
  entries: z.array(z.strictObject(auditShape).meta({ id: 'AuditEntry' })),
  next: z.string().nullable(),
})

/** What went wrong (RFC 9457). `code` is stable and that of the engine where the engine refused. */
export const problemSchema = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    /** Of a conflict: the run that is in the way, and its status. */
    runId: z.string().optional(),
    runStatus: z.enum(RUN_STATUSES).nullable().optional(),
    /** Of what a schema refuses. */
    issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem' })

export const openApiSchema = z.looseObject({ openapi: z.string() })

const filterShape = {
  status: oneOrMany(z.enum(RUN_STATUSES), RUN_STATUSES.length).optional(),
  jobName: oneOrMany(text).optional(),
  tenant: z.string().max(512).optional(),
  /** `labels[team]=red` */
  labels: labelFilter.optional(),
  createdFrom: z.string().max(64).optional(),
  createdBefore: z.string().max(64).optional(),
  /** Shorter ones would be of almost all runs. */
  idPrefix: z.string().min(6).max(64).optional(),
  errorCode: text.optional(),
  waitsFor: z.enum(['retry', 'unpark', 'signal', 'time', 'child']).optional(),
  /** The children of this run. */
  parent: text.optional(),
} satisfies Partial<Shape<RunFilter>>

/** Which runs, in an address: those that meet every condition. */
const queryShape = { ...filterShape, waitsForRetry: flag.optional(), parked: flag.optional() }

export const runListQuerySchema = z.strictObject({
  ...queryShape,
  /** So many at most; the server may give less and a `next`. */
  limit: wholeNumber.optional(),
  /** The `next` of the page before, or the id of a run that is still there. */
  cursor: text.optional(),
})

/** `upTo`: counts no further. The server stops somewhere in any case. */
export const countQuerySchema = z.strictObject({ ...queryShape, upTo: wholeNumber.optional() })

export const waitListQuerySchema = z.strictObject({
  jobName: filterShape.jobName,
  tenant: filterShape.tenant,
  labels: filterShape.labels,
  limit: wholeNumber.optional(),
  cursor: text.optional(),
})

export const statisticsQuerySchema = z.strictObject({
  from: z.string().max(64).optional(),
  before: z.string().max(64).optional(),
  jobName: text.optional(),
  tenant: z.string().max(512).optional(),
  interval: z.enum(['hour', 'day']).optional(),
} satisfies Shape<StatisticsFilter>)

export const logListQuerySchema = z.strictObject({ after: text.optional(), limit: wholeNumber.optional() })
export const eventListQuerySchema = z.strictObject({ after: wholeNumber.optional(), limit: wholeNumber.optional() })
export const auditListQuerySchema = z.strictObject({
  actor: text.optional(),
  action: text.optional(),
  target: text.optional(),
  tenant: text.optional(),
  limit: wholeNumber.optional(),
  cursor: text.optional(),
})
export const linkQuerySchema = z.strictObject({ token: z.string().min(1).max(8000) })
export const followQuerySchema = z.strictObject({ after: wholeNumber.optional() })

const triggerOptionsShape = {
  idempotencyKey: text.optional(),
  onConflict: z.enum(['return', 'reject']).optional(),
  concurrencyKey: text.optional(),
  concurrencyLimit: z.int().optional(),
  holdKeyWhileWaiting: z.boolean().optional(),
  delay: z.number().optional(),
  debounce: z
    .union([z.number(), z.strictObject({ key: text.optional(), wait: z.number(), maxWait: z.number().optional() })])
    .optional(),
  batch: z.strictObject({ key: text.optional(), max: z.number(), within: z.number() }).optional(),
  runAt: z.string().max(64).optional(),
  priority: z.int().optional(),
  labels: labels.optional(),
} satisfies Shape<Omit<TriggerOptions, 'tenant' | 'transaction'>>

/** `POST /runs`. The payload is checked by the schema of the job where the server knows it. */
export const triggerBodySchema = z.strictObject({
  jobName: text,
  payload: value,
  options: z.strictObject(triggerOptionsShape).optional(),
})

/** So many at once: each is a run to be written. */
const MOST_TRIGGERED = 1000

/** `POST /runs/batch`: all of them are created, or none. */
export const batchTriggerBodySchema = z.strictObject({
  jobName: text,
  runs: z
    .array(z.strictObject({ payload: value, options: z.strictObject(triggerOptionsShape).optional() }))
    .max(MOST_TRIGGERED),
})

/** What can be done to many runs at once: to those that meet every condition and were there before. */
export const bulkBodySchema = z.strictObject({
  action: z.enum(['cancel', 'retry', 'delete']),
  filter: z.strictObject(filterShape),
})

/** How many runs meet the conditions at present; `isMore`: at least so many. */
export const bulkPreviewSchema = z.strictObject({ count, isMore: z.boolean() })

/** `POST /runs/:id/fork`: goes on after this completed step, else from the beginning. Without a payload it is that of the run. */
export const forkBodySchema = z.strictObject({
  after: text.optional(),
  payload: value,
}) satisfies z.ZodType<ForkOptions>

/** `POST /runs/:id/signal` */
export const signalBodySchema = z.strictObject({ name: text, payload: value, dedupeKey: text.optional() })
export const signalAnswerSchema = z.strictObject({ deduplicated: z.boolean() })

export type RunHint = z.output<typeof runHintSchema>
export type WireRun = z.output<typeof runSchema>
export type WireStep = z.output<typeof stepSchema>
export type WireLog = z.output<typeof logSchema>
export type WireEvent = z.output<typeof eventSchema>
/** A page of runs. */
export type RunPage = z.output<typeof runPageSchema>
/** Who asks, and what they may do. */
export type Me = z.output<typeof meSchema>
/** What went wrong (RFC 9457). */
export type Problem = z.output<typeof problemSchema>
export type TriggerBody = z.input<typeof triggerBodySchema>
/** What is to be done to which runs. */
export type BulkBody = z.input<typeof bulkBodySchema>
/** How many runs a bulk action would be about. */
export type BulkPreview = z.output<typeof bulkPreviewSchema>
/** A page of runs that wait for somebody. */
export type WaitPage = z.output<typeof waitListSchema>
/** The jobs that a server knows. */
export type JobList = z.output<typeof jobListSchema>
export type SignalBody = z.input<typeof signalBodySchema>
/** The last word of a run that is followed. */
export type Done = z.output<typeof doneSchema>
export type { MessageCounts, MessagePage, SchedulePage, ServedMessage, ServedSchedule } from './wire-cluster'
export type { ServedLead, ServedWorker, WorkerList } from './wire-cluster'
