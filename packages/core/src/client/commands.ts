import {
  ConflictError,
  describeError,
  encodeValue,
  ENDED_STATUSES,
  type EndedStatus,
  InvalidOptionError,
  isStorableDelay,
  isStorableInstant,
  NotFoundError,
  type OptionNames,
  ParkedError,
  refuseBadKey,
  refuseBadText,
  refuseUnknownOptions,
  requireInteger,
} from '../base'
import { type Engine, recorded } from '../engine'
import { type EventInput, type Run, toRun } from '../job'
import { removeAll } from './remove-all'
import { capability, COMMANDED_FROM, type PurgeParams, type RunCommand, type RunRecord, type Scope } from '../port'
import { type Actor, actorIn, type CommandOptions, notedBy, type Noted } from './acting'
import { continuationStateOf } from './explain'
import { isId, listOf } from './runs'

/** Which ended runs `purge()` removes: those that meet every condition. */
export interface PurgeOptions {
  /** Ended longer ago than this many milliseconds, or before this instant. */
  readonly olderThan?: number | Date | undefined
  /** Ended so only. Default: all that have ended. */
  readonly status?: EndedStatus | readonly EndedStatus[] | undefined
  /** One job, or any of several. */
  readonly jobName?: string | readonly string[] | undefined
  /** Of this tenant only. */
  readonly tenant?: string | undefined
  /** Leave the newest ended runs alone, this many. */
  readonly keepNewest?: number | undefined
  /** Who does it: kept with the ids of what was removed, for `getAudit()`. */
  readonly as?: Actor | undefined
}

/** How a signal is sent. */
export interface SignalOptions {
  /** A second signal of the run with the same key is not kept, and answered `{ deduplicated: true }`. */
  readonly dedupeKey?: string | undefined
  /** Who sends it: kept for `getAudit()`. */
  readonly as?: Actor | undefined
}

/** What an operator does to runs. An unknown run is `NotFoundError`, one in the wrong state `ConflictError`. */
export interface RunCommands {
  /** A failed, timed out or cancelled run starts again; its completed steps stay. */
  retry(id: string, options?: CommandOptions): Promise<Run>
  /** Ends a waiting run at once; a running one as soon as its worker hears of it. */
  cancel(id: string, options?: CommandOptions): Promise<Run>
  /**
   * Hands a run something for its `ctx.waitFor(name)`; one that comes early is kept. To an ended run it is a
   * `ConflictError`. The same `dedupeKey` counts once for a run, and sending it again is no error, after the end either.
   */
  signal(
    id: string,
    name: string,
    payload?: unknown,
    options?: SignalOptions,
  ): Promise<{ readonly deduplicated: boolean }>
  /** A parked run goes on, when what it was parked for has been mended: see `explain()`. */
  unpark(id: string, options?: CommandOptions): Promise<Run>
  /** Ends a parked run as failed. `retry()` starts it again. */
  failParked(id: string, options?: CommandOptions): Promise<Run>
  /** Removes an ended run and everything of it. */
  deleteRun(id: string, options?: CommandOptions): Promise<void>
  /** Removes ended runs; returns how many. */
  purge(options?: PurgeOptions): Promise<number>
}

export interface RunCommandsParams {
  readonly engine: Engine
  /** Everything is limited to this tenant. */
  readonly tenant?: string | undefined
  /** Who does it, where a call does not say. */
  readonly as?: Actor | undefined
  readonly onApplied: (kind: RunCommand['kind'], run: RunRecord) => void
  readonly onSignal: (runId: string) => void
}

/** Few enough not to hold up the process for long. */
const PURGE_BATCH = 200
type RunNames = Pick<RunRecord, 'id' | 'jobName'>

const ANY_RUN = { id: '', jobName: '' }

export function createRunCommands({ engine, tenant, as, onApplied, onSignal }: RunCommandsParams): RunCommands {
  const { storage, events, plugins } = engine
  const scope = tenant === undefined ? {} : { tenant }

  const by = (call: keyof typeof ACTIONS, options: CommandOptions): Noted =>
    notedBy(engine, ACTIONS[call], actorIn(`${ACTIONS[call]}()`, options, as))

  async function apply(command: RunCommand, eventOf: (run: RunRecord) => EventInput): Promise<RunRecord> {
    if (!isId(command.runId)) throw NotFoundError.run(String(command.runId))
    const answer = await storage.command({ ...command, ...scope })
    if (!answer.applied)
      throw answer.reason === 'not-found' ? NotFoundError.run(command.runId) : conflict(command, answer.run)
    const { run } = answer
    const event = eventOf(run)
    // What is said of a run that was removed cannot be stored with it.
    const isStored = command.kind !== 'remove' && plugins.recordsEvent(event.type)
    events.emit(event, isStored ? run.lastEventSequence : undefined)
    onApplied(command.kind, run)
    return run
  }

  return {
    async retry(id, options = {}) {
      const events = recorded(engine, retryEvent(ANY_RUN))
      return toRun(await apply({ kind: 'retry', runId: id, events, ...by('retry', options) }, retryEvent))
    },
    async cancel(id, options = {}) {
      const cancelled = recorded(engine, cancelEvent(ANY_RUN, false))
      const requested = recorded(engine, cancelEvent(ANY_RUN, true))
      const run = await apply(
        { kind: 'cancel', runId: id, events: { cancelled, requested }, ...by('cancel', options) },
        (after) => cancelEvent(after, after.status === 'running'),
      )
      return toRun(run, continuationStateOf(engine, run))
    },
    async signal(id, name, ...[payload, options = {}]) {
      const signals = capability(storage, 'signals', 'signal()')
      if (!isId(id)) throw NotFoundError.run(String(id))
      if (typeof name !== 'string' || name === '')
        throw new InvalidOptionError('signal() needs the name of the signal.')
      refuseBadText('The name of a signal', name)
      refuseUnknownOptions('signal()', options, SIGNAL_OPTIONS)
      const { dedupeKey } = options
      refuseBadKey('dedupeKey', dedupeKey)
      const text = encodeValue(payload, `The payload of signal "${name}"`)
      const event = { type: 'run:signal', runId: id, signalName: name } as const
      const answer = await signals.send({
        ...scope,
        runId: id,
        name,
        payload: text,
        dedupeKey: dedupeKey ?? null,
        events: recorded(engine, event),
        ...notedBy(engine, 'signal', options.as ?? as),
      })
      if (!answer.kept && answer.reason === 'not-found') throw NotFoundError.run(id)
      if (!answer.kept && answer.reason === 'wrong-state') throw endedBefore(answer.run)
      if (answer.kept) {
        events.emit(event)
        onSignal(id)
      }
      return { deduplicated: !answer.kept }
    },
    ...createParkedCommands(engine, { apply, by }),
    async deleteRun(id, options = {}) {
      const event = ({ jobName }: RunNames): EventInput => ({ type: 'run:delete', runId: id, jobName })
      await apply({ kind: 'remove', runId: id, ...by('remove', options) }, event)
    },
    purge: (options = {}) => purgeRuns(engine, options, { scope, as }),
  }
}

interface PurgeScope {
  readonly scope: Scope
  readonly as: Actor | undefined
}

async function purgeRuns(engine: Engine, options: PurgeOptions, { scope, as }: PurgeScope): Promise<number> {
  const params = { ...toPurge(options), ...scope }
  // A batch of runs that have much to remove is smaller.
  return removeAll(engine, 1, () => engine.storage.purge({ ...params, ...notedBy(engine, 'purge', options.as ?? as) }))
}

function endedBefore({ id, status }: RunRecord): ConflictError {
  return new ConflictError(`Run ${id} is ${status}; signal() takes a run that has not ended.`, id, status)
}

function retryEvent({ id, jobName }: RunNames): EventInput {
  return { type: 'run:retry', runId: id, jobName, byHand: true, error: null, delayMs: null }
}

type Apply = (command: RunCommand, eventOf: (run: RunRecord) => EventInput) => Promise<RunRecord>

interface Applying {
  readonly apply: Apply
  readonly by: (call: 'unpark' | 'failParked', options: CommandOptions) => Noted
}

function createParkedCommands(engine: Engine, { apply, by }: Applying): Pick<RunCommands, 'unpark' | 'failParked'> {
  const unparkEvent = ({ id, jobName }: RunNames): EventInput => ({ type: 'run:unpark', runId: id, jobName })
  return {
    async unpark(id, options = {}) {
      const events = recorded(engine, unparkEvent(ANY_RUN))
      return toRun(await apply({ kind: 'unpark', runId: id, events, ...by('unpark', options) }, unparkEvent))
    },
    async failParked(id, options = {}) {
      const { message: error, detail } = describeError(new ParkedError())
      const failEvent = ({ id: runId, jobName }: RunNames): EventInput => {
        return { type: 'run:fail', runId, jobName, error, failedStepName: null }
      }
      const events = recorded(engine, failEvent(ANY_RUN))
      return toRun(
        await apply({ kind: 'failParked', runId: id, error, detail, events, ...by('failParked', options) }, failEvent),
      )
    },
  }
}

function cancelEvent({ id, jobName }: RunNames, requested: boolean): EventInput {
  return { type: 'run:cancel', runId: id, jobName, requested }
}

function conflict({ kind, runId }: RunCommand, { status }: RunRecord): ConflictError {
  const wanted = kind === 'cancel' ? [...COMMANDED_FROM.cancel, ...COMMANDED_FROM.requestCancel] : statesFor(kind)
  const call = kind === 'park' ? 'parking' : `${ACTIONS[kind]}()`
  return new ConflictError(
    `Run ${runId} is ${status}; ${call} takes a run that is ${wanted.join(', ')}.`,
    runId,
    status,
  )
}

/** What each is called in the audit: as the method is. */
const ACTIONS = {
  cancel: 'cancel',
  retry: 'retry',
  remove: 'deleteRun',
  unpark: 'unpark',
  failParked: 'failParked',
} as const

function isAge(olderThan: number | Date): boolean {
  return olderThan instanceof Date ? isStorableInstant(olderThan) : isStorableDelay(olderThan)
}

function statesFor(kind: Exclude<RunCommand['kind'], 'cancel'>): readonly string[] {
  if (kind === 'unpark' || kind === 'failParked') return ['parked']
  return COMMANDED_FROM[kind]
}

const SIGNAL_OPTIONS: OptionNames<SignalOptions> = { dedupeKey: true, as: true }
const PURGE_OPTIONS: OptionNames<PurgeOptions> = {
  olderThan: true,
  status: true,
  jobName: true,
  tenant: true,
  keepNewest: true,
  as: true,
}

function toPurge(options: PurgeOptions): PurgeParams {
  refuseUnknownOptions('purge()', options, PURGE_OPTIONS)
  const { olderThan, status, jobName, tenant, keepNewest } = options
  if (olderThan !== undefined && !isAge(olderThan)) {
    throw new InvalidOptionError(
      `olderThan must be a Date of the years 1 to 9999, or a number of milliseconds from 0 up to 100 years, not ${String(olderThan)}.`,
    )
  }
  if (keepNewest !== undefined) requireInteger('keepNewest', keepNewest, { from: 0 })
  const statuses = status === undefined ? ENDED_STATUSES : listOf(status)
  const active = statuses.find((each) => !ENDED_STATUSES.includes(each))
  if (active !== undefined) throw new InvalidOptionError(`purge() takes ended runs only; "${active}" is not an end.`)
  return {
    statuses,
    ...(typeof olderThan === 'number' && { olderThanMs: olderThan }),
    ...(olderThan instanceof Date && { before: olderThan.toISOString() }),
    ...(jobName !== undefined && { jobNames: listOf(jobName) }),
    ...(tenant !== undefined && { tenant }),
    ...(keepNewest !== undefined && { keepNewest }),
    limit: PURGE_BATCH,
  }
}
