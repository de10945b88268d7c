import { InvalidOptionError, type JobRef, type Overlap } from '@coji/durably-core'
import type { ScheduleContent } from '@coji/durably-core/storage'
import {
  instantIn,
  refuseUnknownOptions,
  requireDelay,
  type OptionNames,
  type RunDrafts,
} from '@coji/durably-core/extend'
import { refuseModifiers } from './calendar'
import { decodeDefinition, type Definition, encodeDefinition, type Missed, templateOf } from './definition'
import { calendarOf, type Timing } from './timing'

/** When a schedule fires: one of `cron`, `every` and `at`. */
export interface TimingOptions {
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  readonly cron?: string | undefined
  /** Of `cron`: a name of the IANA database, such as `Asia/Tokyo`. Default `UTC`. */
  readonly zone?: string | undefined
  /** Milliseconds from one instant to the next, counted from `start`, else from when the schedule was created. */
  readonly every?: number | undefined
  /** Once. */
  readonly at?: Date | string | undefined
  /** No instant before this one. */
  readonly start?: Date | string | undefined
  /** No instant after this one. */
  readonly end?: Date | string | undefined
}

/** What a schedule does beside firing. */
export interface RunOptions {
  /**
   * Of instants that came while no process looked: `latest` (the default) fires the last one, `skip` none that is older than a
   * minute, `{ all: true, max }` the last `max` of them.
   */
  readonly missed?: Missed | undefined
  /**
   * While a run of the schedule has not ended: `allow` (the default) another one beside it, `skip` the instant, `queue` the
   * new run behind it, or `cancel` it.
   */
  readonly overlap?: Overlap | undefined
  /** Each run may start up to so many milliseconds after its instant, by chance. */
  readonly jitter?: number | undefined
  /** For `getRuns({ labels })`. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Higher starts first. Default 0. */
  readonly priority?: number | undefined
  /** Runs with one key take turns, across all jobs of the tenant. Not with `overlap: 'queue'` or `'cancel'`. */
  readonly concurrencyKey?: string | undefined
  /** How many runs of the key may run at a time. Default 1. */
  readonly concurrencyLimit?: number | undefined
}

/** What `define()` and `create()` take. */
export interface ScheduleOptions<TInput = unknown> extends TimingOptions, RunOptions {
  /** Registered or declared on the instance. */
  readonly job: string | JobRef<TInput, unknown>
  /** What the job gets at each instant. */
  readonly payload: TInput
  /** Whose schedule it is, and whose its runs are. */
  readonly tenant?: string | undefined
}

/** What `update()` takes: what is left out stays as it is. */
export interface ScheduleUpdate extends TimingOptions, RunOptions {
  /** What the job gets from now on. */
  readonly payload?: unknown
}

const TIMING: OptionNames<TimingOptions> = { cron: true, zone: true, every: true, at: true, start: true, end: true }
const RUN: OptionNames<RunOptions> = {
  missed: true,
  overlap: true,
  jitter: true,
  labels: true,
  priority: true,
  concurrencyKey: true,
  concurrencyLimit: true,
}
const UPDATE: OptionNames<ScheduleUpdate> = { ...TIMING, ...RUN, payload: true }
export const SCHEDULE: OptionNames<ScheduleOptions> = { ...UPDATE, job: true, tenant: true }

/** Checked. */
export function contentOf(drafts: RunDrafts, name: string, options: ScheduleOptions): ScheduleContent {
  const what = `Schedule "${name}"`
  refuseUnknownOptions(what, options, SCHEDULE)
  const { job, payload, tenant } = options
  const draft = drafts.draft(job, payload, { ...runOptionsIn(options), ...(tenant !== undefined && { tenant }) })
  const definition = { ...timesOf(what, options), ...manners(what, options), run: templateOf(draft) }
  const { jobName, payload: encoded } = draft
  return { jobName, payload: encoded, definition: encodeDefinition(definition), overlap: overlapOf(what, options) }
}

/** What is changed, as it was read. */
export interface Before {
  readonly name: string
  readonly content: ScheduleContent
}

/** The content with what is given in place of what was there. */
export function contentWith(drafts: RunDrafts, { name, content }: Before, given: ScheduleUpdate): ScheduleContent {
  const what = `Schedule "${name}"`
  refuseUnknownOptions(`update() of "${name}"`, given, UPDATE)
  const before = decodeDefinition(content.definition)
  const options = { ...optionsOf(content, before), ...given, ...(hasTiming(given) ? timingIn(given, before) : {}) }
  const runOptions = runOptionsIn(options)
  const { jobName } = content
  const draft = Object.hasOwn(given, 'payload')
    ? drafts.draft(jobName, given.payload, runOptions)
    : { ...drafts.draftEncoded(jobName, content.payload, runOptions), ...versionOf(before) }
  const definition = { ...timesOf(what, options), ...manners(what, options), run: templateOf(draft) }
  return {
    jobName,
    payload: draft.payload,
    definition: encodeDefinition(definition),
    overlap: overlapOf(what, options),
  }
}

function versionOf({ run: { jobVersion, timeoutMs } }: Definition) {
  return { jobVersion, timeoutMs }
}

/** The options that make this definition. */
function optionsOf({ overlap }: ScheduleContent, { timing, start, end, missed, jitterMs, run }: Definition) {
  const { labels, priority, concurrencyKey, concurrencyLimit } = run
  return {
    ...timingOptionsOf(timing),
    ...(start !== null && { start }),
    ...(end !== null && { end }),
    ...{ missed, overlap, jitter: jitterMs, labels, priority },
    ...(concurrencyKey !== null && { concurrencyKey, concurrencyLimit }),
  }
}

function timingOptionsOf(timing: Timing): TimingOptions {
  if (timing.kind === 'cron') return { cron: timing.cron, zone: timing.zone }
  return timing.kind === 'every' ? { every: timing.ms } : { at: timing.at }
}

const KINDS = ['cron', 'every', 'at'] as const

function hasTiming(given: ScheduleUpdate): boolean {
  return KINDS.some((kind) => given[kind] !== undefined)
}

/** In place of another timing. A zone goes on for another pattern. */
function timingIn({ cron, zone, every, at }: ScheduleUpdate, { timing }: Definition): TimingOptions {
  const before = timing.kind === 'cron' ? timing.zone : undefined
  return { cron, every, at, zone: cron === undefined ? zone : (zone ?? before) }
}

function runOptionsIn({ labels, priority, concurrencyKey, concurrencyLimit }: RunOptions) {
  return { labels, priority, concurrencyKey, concurrencyLimit }
}

/** Checked: when it fires. */
export function timesOf(what: string, options: TimingOptions): Pick<Definition, 'timing' | 'start' | 'end'> {
  const [start, end] = [instantOf(what, 'start', options.start), instantOf(what, 'end', options.end)]
  if (start !== null && end !== null && end < start) {
    throw new InvalidOptionError(`${what} ends at ${end}, before it starts at ${start}.`)
  }
  return { timing: timingOf(what, options), start, end }
}

function timingOf(what: string, { cron, zone, every, at }: TimingOptions): Timing {
  const given = KINDS.filter((kind) => ({ cron, every, at })[kind] !== undefined)
  if (given.length !== 1) {
    const found = given.length === 0 ? 'none of them' : given.join(' and ')
    throw new InvalidOptionError(`${what} takes one of cron, every and at, and was given ${found}.`)
  }
  if (zone !== undefined && cron === undefined) {
    throw new InvalidOptionError(`${what} has a zone, which is for cron only.`)
  }
  if (cron !== undefined) return cronOf(what, cron, zone)
  if (every !== undefined) return everyOf(what, every)
  return { kind: 'at', at: instantOf(what, 'at', at) ?? '' }
}

function cronOf(what: string, cron: string, zone = 'UTC'): Timing {
  for (const [name, text] of Object.entries({ cron, zone })) {
    if (typeof text !== 'string')
      throw new InvalidOptionError(`${name} of ${what} must be a text, not ${String(text)}.`)
  }
  refuseModifiers(cron)
  calendarOf(cron, zone)
  return { kind: 'cron', cron: cron.trim().split(/\s+/).join(' '), zone }
}

const SHORTEST_MS = 100

function everyOf(what: string, ms: number): Timing {
  if (!Number.isSafeInteger(ms) || ms < SHORTEST_MS) {
    throw new InvalidOptionError(
      `every of ${what} must be a whole number of milliseconds from ${SHORTEST_MS}, not ${ms}.`,
    )
  }
  requireDelay(`every of ${what}`, ms)
  return { kind: 'every', ms }
}

function instantOf(what: string, name: string, instant: Date | string | undefined): string | null {
  return instant === undefined ? null : instantIn(`${name} of ${what}`, instant)
}

const MOST_MISSED = 1000

/** Checked: what happens to instants that came too late, and by how much chance moves a run. */
function manners(what: string, { missed = 'latest', jitter = 0 }: RunOptions): Pick<Definition, 'missed' | 'jitterMs'> {
  const { all, max } = Object(missed) as { readonly all?: unknown; readonly max?: unknown }
  const isAll = all === true && Number.isSafeInteger(max) && Number(max) >= 1 && Number(max) <= MOST_MISSED
  if (missed !== 'latest' && missed !== 'skip' && !isAll) {
    throw new InvalidOptionError(
      `missed of ${what} must be 'latest', 'skip' or { all: true, max } with a max from 1 to ${MOST_MISSED}.`,
    )
  }
  requireDelay(`jitter of ${what}`, jitter)
  return { missed: typeof missed === 'string' ? missed : { all: true, max: missed.max }, jitterMs: jitter }
}

const OVERLAPS: readonly Overlap[] = ['allow', 'skip', 'queue', 'cancel']

function overlapOf(what: string, { overlap = 'allow', concurrencyKey }: RunOptions): Overlap {
  if (!OVERLAPS.includes(overlap)) {
    throw new InvalidOptionError(`overlap of ${what} must be one of ${OVERLAPS.join(', ')}, not ${String(overlap)}.`)
  }
  if ((overlap === 'queue' || overlap === 'cancel') && concurrencyKey !== undefined) {
    throw new InvalidOptionError(`${what} has a concurrencyKey, and overlap: '${overlap}', which has one of its own.`)
  }
  return overlap
}
