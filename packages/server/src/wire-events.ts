/** What streams tell: events of a run, whose `type` says which fields they have beside those of all, and hints. */
import { type EventFields, RUN_STATUSES } from '@coji/durably-core'
import { z } from 'zod'
import { count, instant, progress, value, waitingFor } from './wire-parts'

type OfRuns = {
  [T in keyof EventFields]: EventFields[T] extends { readonly runId: string } ? T : never
}[keyof EventFields]

type OwnFields = {
  readonly [T in OfRuns]: Readonly<Record<Exclude<keyof EventFields[T], 'runId' | 'jobName'>, z.ZodType>>
}

const step = { stepName: z.string(), stepIndex: count }

const OWN = {
  'run:trigger': { payload: value },
  'run:deduplicated': { idempotencyKey: z.string(), payloadDiffers: z.boolean() },
  'run:start': { payload: value },
  'run:complete': { output: value, duration: z.number() },
  'run:fail': { error: z.string(), failedStepName: z.string().nullable() },
  'run:timeout': { error: z.string() },
  'run:cancel': { requested: z.boolean() },
  'run:retry': { byHand: z.boolean(), error: z.string().nullable(), delayMs: z.number().nullable() },
  'run:suspend': { waitingFor },
  'run:signal': { signalName: z.string() },
  'run:park': { reason: z.string() },
  'run:unpark': {},
  'run:release': {},
  'run:recover': { crashed: z.boolean() },
  'run:progress': { progress },
  'run:delete': {},
  'run:assign': { workerId: z.string() },
  'run:orphan': { because: z.enum(['declined', 'overdue']) },
  'step:start': step,
  'step:complete': { ...step, output: value, duration: z.number() },
  'step:fail': { ...step, error: z.string() },
  'step:chunk': { ...step, chunk: value },
  'step:restart': step,
  'step:unawaited': step,
  'log:write': {
    stepName: z.string().nullable(),
    level: z.enum(['info', 'warn', 'error']),
    message: z.string(),
    data: value,
  },
  'schedule:fired': { scheduleName: z.string(), tenant: z.string(), scheduledFor: z.string() },
  'worker:lease-lost': { workerId: z.string() },
} satisfies OwnFields

const ofEvery = { runId: z.string(), jobName: z.string(), seq: count, timestamp: instant }

const toSchema = ([type, own]: [string, Readonly<Record<string, z.ZodType>>]) =>
  z.looseObject({ type: z.literal(type), ...ofEvery, ...own })

const [first, ...others] = Object.entries(OWN).map(toSchema) as [ReturnType<typeof toSchema>]

export const eventSchema = z.discriminatedUnion('type', [first, ...others]).meta({ id: 'Event' })

/** The last word of `GET /runs/:id/events`, after the last event of a run that has ended. */
export const doneSchema = z.strictObject({ status: z.enum(RUN_STATUSES) }).meta({ id: 'Done' })

/** A message of `GET /events`: the run changed, and was so when it was looked at. `null`: it is gone. */
export const runHintSchema = z
  .strictObject({ id: z.string(), status: z.enum(RUN_STATUSES).nullable(), version: count.nullable() })
  .meta({ id: 'RunHint' })

/** What the messages of a stream carry as JSON, by their `event`; of one that has none it is `message`. */
export interface Messages {
  readonly messages: Readonly<Record<string, z.ZodType>>
}

/** `GET /runs/:id/events` */
export const runEvents: Messages = { messages: { message: eventSchema, done: doneSchema } }
/** `GET /events`; `reload`: everything may have changed. */
export const runHints: Messages = { messages: { message: runHintSchema, reload: z.strictObject({}) } }
