/** What goes over the wire of schedules and messages. */
import { z } from 'zod'
import { count, flag, instant, oneOrMany, text, value, wholeNumber } from './wire-parts'

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

const tenant = z.string().max(512).optional()

export const tenantQuerySchema = z.strictObject({ tenant })

export const scheduleListQuerySchema = z.strictObject({
  jobName: text.optional(),
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
