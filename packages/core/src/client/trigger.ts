import { commonTransaction, enqueueIn } from './caller-transaction'
import {
  type EventInput,
  type JobDeclaration,
  toRun,
  TRIGGER_OPTIONS,
  type TriggeredRun,
  type TriggerOptions,
} from '../job'
import { type Engine, isWatched, recorded } from '../engine'
import {
  decodeValue,
  encodeValue,
  instantIn,
  InvalidOptionError,
  isSameJson,
  type Json,
  parseNow,
  requireDelay,
  refuseBadKey,
  refuseBadText,
  requireLabels,
  refuseUnknownOptions,
  requireBoolean,
  requireInteger,
} from '../base'
import { enqueueBatched, refuseBadBatch } from './batch'
import { enqueueDebounced, refuseBadDebounce, refuseGathering } from './debounce'
import { retriedWrite } from './retried-write'
import { agreeing, type EnqueueAnswer, type NewRun, type RunRecord } from '../port'

export interface TriggerItem {
  readonly job: JobDeclaration
  readonly payload: unknown
  readonly options: TriggerOptions
}

/** Validates everything, then creates all runs or none. */
export async function createRuns(engine: Engine, items: readonly TriggerItem[]): Promise<readonly EnqueueAnswer[]> {
  const runs: NewRun[] = []
  for (const item of items) {
    const run = newRunOf(engine, item)
    runs.push(run instanceof Promise ? await run : run)
    if (items.length > 1) refuseGathering(item.options)
  }
  if (runs.length === 0) return []
  const transaction = commonTransaction(items.map(({ options }) => options.transaction))
  const [run, { debounce, batch }] = [runs[0] as NewRun, items[0]?.options ?? DEFAULTS]
  const answer =
    debounce !== undefined
      ? await enqueueDebounced(engine, run, { debounce, transaction })
      : batch !== undefined && (await enqueueBatched(engine, run, { batch, transaction }))
  if (answer === false) return enqueueRuns(engine, runs, transaction)
  if (answer.created) announceWith(engine, transaction, () => announce(engine, answer, run))
  return [answer]
}

export function toTriggeredRun({ run, created }: EnqueueAnswer): TriggeredRun {
  return Object.assign(toRun(run), { deduplicated: !created })
}

/** Runs that are checked and encoded already. */
export async function enqueueRuns(
  engine: Engine,
  runs: readonly NewRun[],
  transaction: object | null,
): Promise<readonly EnqueueAnswer[]> {
  const answers = await enqueueByValue(runs, (list) =>
    transaction === null ? enqueueSurely(engine, list) : enqueueIn(engine, transaction, list),
  )
  const announceAll = () => {
    for (const [index, answer] of answers.entries()) announce(engine, answer, runs[index] as NewRun)
  }
  announceWith(engine, transaction, announceAll)
  return answers
}

/** Of a transaction that is not durably's own nobody says when, or whether, it is committed. */
function announceWith(engine: Engine, transaction: object | null, tell: () => void): void {
  if (transaction === null) tell()
  else engine.openTransactions.get(transaction)?.push(tell)
}

/** Checked and encoded, on its way into the storage; within this call unless the schema of the job takes its time. */
export function newRunOf(engine: Engine, { job: given, payload, options }: TriggerItem): NewRun | Promise<NewRun> {
  if (options !== DEFAULTS) refuseBadOptions(options)
  // Registered after the caller got what it has of the job.
  const job = engine.jobs.get(given.name) ?? given
  const what = `The payload of job "${job.name}"`
  const input = parseNow(job.input, payload, what)
  if (input instanceof Promise)
    return input.then(({ value }) => newRun({ engine, job, payload: encodeValue(value, what), options }))
  return newRun({ engine, job, payload: encodeValue(input.value, what), options })
}

/** A job with a payload that was checked and encoded before. */
export interface CheckedItem extends TriggerItem {
  readonly engine: Engine
  readonly payload: Json | null
}

/** Of a payload that was checked and encoded before. */
export function newRunOfEncoded(item: CheckedItem): NewRun {
  refuseBadOptions(item.options)
  return newRun(item)
}

function newRun({ engine, job, payload, options }: CheckedItem): NewRun {
  const { plugins, environment } = engine
  const isRecorded = plugins.recordsEvent('run:trigger')
  return {
    id: environment.createId(),
    tenant: options.tenant ?? '',
    jobName: job.name,
    jobVersion: job.version,
    payload,
    labels: options.labels ?? NO_LABELS,
    idempotencyKey: options.idempotencyKey ?? null,
    onConflict: options.onConflict ?? 'return',
    concurrencyKey: options.concurrencyKey ?? null,
    concurrencyLimit: options.concurrencyLimit ?? 1,
    holdKeyWhileWaiting: options.holdKeyWhileWaiting ?? false,
    priority: options.priority ?? 0,
    start: startIn(options),
    timeoutMs: job.timeoutMs,
    parentRunId: null,
    scheduleId: null,
    scheduledFor: null,
    traceParent: plugins.traceParent(),
    events: isRecorded ? recorded(engine, { type: 'run:trigger', runId: '', jobName: job.name, payload: null }) : NONE,
  }
}

const NONE: readonly never[] = Object.freeze([])
const AT_ONCE: NewRun['start'] = Object.freeze({ afterMs: 0 })

function startIn({ runAt, delay }: TriggerOptions): NewRun['start'] {
  if (runAt !== undefined) return { at: instantIn('runAt', runAt) }
  return delay === undefined ? AT_ONCE : { afterMs: delay }
}

/** For who leaves everything as it is. */
export const DEFAULTS: TriggerOptions = Object.freeze({})
const NO_LABELS = Object.freeze({})

const MAX_LABELS = 32

function refuseBadOptions(options: TriggerOptions): void {
  refuseUnknownOptions('trigger()', options, TRIGGER_OPTIONS)
  const {
    delay,
    runAt,
    onConflict = 'return',
    priority = 0,
    concurrencyLimit = 1,
    labels = {},
    holdKeyWhileWaiting = false,
  } = options
  for (const name of ['idempotencyKey', 'concurrencyKey'] as const) refuseBadKey(name, options[name])
  refuseBadText('tenant', options.tenant)
  if (delay !== undefined && runAt !== undefined) throw new InvalidOptionError('Give either delay or runAt, not both.')
  if (delay !== undefined) requireDelay('delay', delay)
  if (onConflict !== 'return' && onConflict !== 'reject') {
    throw new InvalidOptionError(`onConflict must be 'return' or 'reject', not '${String(onConflict)}'.`)
  }
  if (!Number.isSafeInteger(priority) || Math.abs(priority) > 2 ** 31 - 1) {
    throw new InvalidOptionError(`priority must be a 32-bit integer, not ${priority}.`)
  }
  if (options.debounce !== undefined) refuseBadDebounce(options.debounce, options)
  if (options.batch !== undefined) refuseBadBatch(options.batch, options)
  requireInteger('concurrencyLimit', concurrencyLimit, { from: 1, to: 1000 })
  requireBoolean('holdKeyWhileWaiting', holdKeyWhileWaiting)
  if (Object.keys(requireLabels(labels, 'trigger()')).length > MAX_LABELS)
    throw new InvalidOptionError(`A run can have ${MAX_LABELS} labels at most.`)
}

type Enqueue = (runs: readonly NewRun[]) => Promise<readonly EnqueueAnswer[]>

/** Storages compare texts, and refuse too much: what differs in the order of keys only is sent again as it is stored. */
async function enqueueByValue(runs: readonly NewRun[], enqueue: Enqueue): Promise<readonly EnqueueAnswer[]> {
  for (let list = runs; ; ) {
    try {
      return await enqueue(list)
    } catch (error) {
      const agreed = agreeing(list, error)
      if (agreed === null) throw error
      list = agreed
    }
  }
}

/** A run has its id before it is sent. */
function enqueueSurely(engine: Engine, runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]> {
  return retriedWrite(engine, 'the trigger', () => engine.storage.enqueue(runs))
}

function announce(engine: Engine, { run, created }: EnqueueAnswer, wanted: NewRun): void {
  if (created) {
    announceCreated(engine, run)
    return
  }
  const { id: runId, jobName } = run
  const payloadDiffers = !isSameJson(run.payload, wanted.payload)
  const idempotencyKey = wanted.idempotencyKey ?? ''
  engine.events.emit({ type: 'run:deduplicated', runId, jobName, idempotencyKey, payloadDiffers })
}

export function announceCreated(engine: Engine, { id: runId, jobName, payload, lastEventSequence }: RunRecord): void {
  const type = 'run:trigger'
  if (!isWatched(engine, type)) {
    engine.events.pass(type, runId)
    return
  }
  const event: EventInput = { type, runId, jobName, payload: decodeValue(payload) }
  engine.events.emit(event, engine.plugins.recordsEvent(type) ? lastEventSequence : undefined)
}
