/** What goes over the wire of schedules, messages and workers. */
import type { LeadRecord, WorkerRecord } from '@coji/durably-core/storage'
import { z } from 'zod'
import { count, flag, instant, labelFilter, oneOrMany, text, value, wholeNumber } from './wire-parts'

type Shape<T> = Readonly<Record<keyof T, z.ZodType>>

/** When a schedule fires. */
const timing = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('cron'), cron: z.string(), zone: z.string() }),
  z.object({ kind: z.literal('every'), ms: z.number() }),
  z.object({ kind: z.literal('at'), at: z.string() }),
])

/** What creates runs at instants. */
export const scheduleSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    tenant: z.string(),
    jobName: z.string(),
    payload: value,
    timing,
    source: z.string().nullable(),
    pausedBecause: z.string().nullable(),
    nextAt: instant.nullable(),
    firedUntil: instant,
    firedCount: count,
    missedCount: count,
    createdAt: instant,
    updatedAt: instant,
    endedAt: instant.nullable(),
  })
  .meta({ id: 'Schedule' })

export const schedulePageSchema = z.strictObject({ schedules: z.array(scheduleSchema), next: z.string().nullable() })
export const scheduleRunSchema = z.strictObject({ id: z.string() })

/** Something that was published, and how many jobs wanted it. */
export const messageSchema = z
  .strictObject({
    id: z.string(),
    tenant: z.string(),
    type: z.string(),
    payload: value,
    dedupeKey: z.string().nullable(),
    availableAt: instant,
    createdAt: instant,
    processedAt: instant.nullable(),
    wanted: count,
  })
  .meta({ id: 'Message' })

export const messagePageSchema = z.strictObject({ messages: z.array(messageSchema), next: z.string().nullable() })

/** How many there are; `unwanted` are those of the processed ones that no job wanted. */
export const messageCountsSchema = z.strictObject({ waiting: count, processed: count, unwanted: count })

/** A worker as the others see it: `isAlive` is by the clock of the database, `running` and `assigned` are what it holds. */
export const workerSchema = z
  .strictObject({
    workerId: z.string(),
    presence: z.enum(['active', 'draining', 'detached']),
    isAlive: z.boolean(),
    capacity: count,
    running: count,
    assigned: count,
    holdsSuspect: z.boolean(),
    placedJobs: z.array(z.string()).readonly(),
    labels: z.record(z.string(), z.string()).readonly(),
    codeVersion: z.string().nullable(),
    firstBeatAt: instant,
    lastBeatAt: instant,
  } satisfies Shape<WorkerRecord>)
  .meta({ id: 'Worker' })

const leadShape = {
  name: z.string(),
  workerId: z.string(),
  epoch: count,
  until: instant,
  isOver: z.boolean(),
} satisfies Shape<LeadRecord>

/** Who leads, or led last. */
export const leadSchema = z.strictObject(leadShape).omit({ name: true }).meta({ id: 'Lead' })

export const workerListSchema = z.strictObject({ workers: z.array(workerSchema), leader: leadSchema.nullable() })

const tenant = z.string().max(512).optional()

export const tenantQuerySchema = z.strictObject({ tenant })

export const scheduleListQuerySchema = z.strictObject({
  jobName: text.optional(),
  /** `labels[team]=red` */
  labels: labelFilter.optional(),
  paused: flag.optional(),
  ended: flag.optional(),
  tenant,
  limit: wholeNumber.optional(),
  cursor: z.string().max(4000).optional(),
})

export const messageListQuerySchema = z.strictObject({
  type: oneOrMany(text).optional(),
  tenant,
  unwanted: flag.optional(),
  from: z.string().max(64).optional(),
  before: z.string().max(64).optional(),
  limit: wholeNumber.optional(),
  cursor: z.string().max(4000).optional(),
})

/** `POST /schedules/resume` and `/run` */
export const scheduleBodySchema = z.strictObject({ name: text, tenant })
/** `POST /schedules/pause`: `because` is shown. */
export const schedulePauseBodySchema = z.strictObject({ name: text, tenant, because: text.optional() })

/** `POST /inbox/replay`: delivered messages that meet every condition, of which there is one. */
export const replayBodySchema = z
  .strictObject({
    type: oneOrMany(text).optional(),
    tenant,
    unwanted: z.boolean().optional(),
    from: z.string().max(64).optional(),
    before: z.string().max(64).optional(),
  })
  .refine(({ tenant: _, ...conditions }) => Object.values(conditions).some((each) => each !== undefined), {
    message: 'Say which messages: by type, unwanted, from or before.',
  })
export const replayAnswerSchema = z.strictObject({ replayed: count })

/** What creates runs at instants, as it is served. */
export type ServedSchedule = z.output<typeof scheduleSchema>
/** A page of schedules. */
export type SchedulePage = z.output<typeof schedulePageSchema>
/** Something that was published, as it is served. */
export type ServedMessage = z.output<typeof messageSchema>
/** A page of messages. */
export type MessagePage = z.output<typeof messagePageSchema>
/** How many messages there are. */
export type MessageCounts = z.output<typeof messageCountsSchema>
/** A worker, as it is served. */
export type ServedWorker = z.output<typeof workerSchema>
/** Who leads, or led last, as it is served. */
export type ServedLead = z.output<typeof leadSchema>
/** Who is there, and who leads. */
export type WorkerList = z.output<typeof workerListSchema>
