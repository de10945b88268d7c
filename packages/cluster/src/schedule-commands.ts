import { type Actor, ConflictError, InvalidOptionError, NotFoundError, type Durably } from '@coji/durably-core'
import type {
  ScheduleChange,
  ScheduleContent,
  ScheduleKey,
  ScheduleRecord,
  ScheduleStorage,
} from '@coji/durably-core/storage'
import { refuseBadText, refuseUnknownOptions, type OptionNames, requireLabels } from '@coji/durably-core/extend'
import { backfill, type BackfillOptions, refuseBadBackfill } from './backfill'
import { refuseBadConditions, refuseBadPlace } from './conditions'
import { decodeDefinition, firesAlike } from './definition'
import { previewOf, previewOfSchedule } from './preview'
import { explainSchedule } from './explain-schedule'
import { readSchedule, runAt } from './firing'
import { nameTaken, overAlready, thoseOver } from './reconcile'
import { type Schedule, toSchedule } from './schedule'
import { storageNow } from './storage-now'
import {
  contentOf,
  contentWith,
  SCHEDULE,
  type ScheduleOptions,
  type ScheduleUpdate,
  type TimingOptions,
} from './schedule-options'

/** Whose schedule. Names are unique within a tenant. */
export interface TenantOption {
  /** Default: nobody's in particular. */
  readonly tenant?: string | undefined
}

/** Whose schedule, and who does something to it. */
export interface ScheduleScope extends TenantOption {
  /** Kept with what was before and what is after, for `durably.getAudit()`. Nothing is kept without it. */
  readonly as?: Actor | undefined
}

/** Which schedules are listed, by tenant and name: those that meet every condition. */
export interface ScheduleFilter extends TenantOption {
  /** Those of this job. */
  readonly jobName?: string | undefined
  /** Those that this code defines. */
  readonly source?: string | undefined
  /** Those whose runs get each of these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Those that are paused, or those that are not. */
  readonly paused?: boolean | undefined
  /** Those that have no instant any more, or those that have. */
  readonly ended?: boolean | undefined
  /** So many at most. Default: all. */
  readonly limit?: number | undefined
  /** The last one of the page before. */
  readonly after?: Pick<Schedule, 'tenant' | 'name'> | undefined
}

/** Schedules as data. */
export interface ScheduleCommands {
  /** Stores one. A name that is taken is a `ConflictError`. */
  create<TInput>(name: string, options: ScheduleOptions<TInput> & ScheduleScope): Promise<Schedule>
  /**
   * What is left out stays. Another timing counts from now on, and must not be over. Schedules that code defines are changed in
   * the code.
   */
  update(name: string, changes: ScheduleUpdate, scope?: ScheduleScope): Promise<Schedule>
  /** It fires no more until it is resumed. `because` is shown. */
  pause(name: string, options?: ScheduleScope & { readonly because?: string | undefined }): Promise<Schedule>
  /** It fires again from now on. */
  resume(name: string, scope?: ScheduleScope): Promise<Schedule>
  /** A run of it at once, beside its instants. Answers the id of the run. */
  runNow(name: string, scope?: ScheduleScope): Promise<{ readonly id: string }>
  /** Its runs stay. */
  remove(name: string, scope?: ScheduleScope): Promise<void>
  get(name: string, scope?: TenantOption): Promise<Schedule | null>
  list(filter?: ScheduleFilter): Promise<Schedule[]>
  /** The next `count` instants of a schedule, or of a timing that is not stored yet. */
  preview(of: string | TimingOptions, count: number, scope?: TenantOption): Promise<Date[]>
  /**
   * Creates the runs of past instants that have none, and answers the ids of the runs of all of them. Called again it creates
   * nothing, for as long as these runs are there.
   */
  backfill(name: string, options: BackfillOptions): Promise<readonly string[]>
  /** In words: when it fires next and why, or why it does not. */
  explain(name: string, scope?: TenantOption): Promise<string>
}

export interface CommandParams {
  readonly durably: Durably
  readonly storage: ScheduleStorage
  readonly onChange: () => void
}

/** All of them, on one storage. */
export function createScheduleCommands(params: CommandParams): ScheduleCommands {
  return { ...createChanges(params), ...createReads(params), ...createRuns(params) }
}

const TRIES = 5

function createChanges({ durably: { drafts }, storage, onChange }: CommandParams) {
  async function change(params: ScheduleChange): Promise<Schedule> {
    const changed = await storage.change(params)
    if (changed === null) throw noSchedule(params.name)
    onChange()
    return toSchedule(changed)
  }
  return {
    async create(name, given) {
      refuseBadName(name)
      refuseUnknownOptions(`Schedule "${name}"`, given, CREATED)
      const { as, ...options } = given
      const content = contentOf(drafts, name, options as unknown as ScheduleOptions)
      await refuseOver(storage, name, content)
      const schedule = { ...keyOf(name, options), id: drafts.environment.createId(), source: null, ...content }
      for (const answer of await storage.create([schedule], drafts.noted('schedules.create', as).audit)) {
        if (!answer.created) throw nameTaken(answer.schedule)
        onChange()
        return toSchedule(answer.schedule)
      }
      throw noSchedule(name)
    },
    async update(name, changes, scope = {}) {
      refuseUnknownOptions('update()', scope, SCOPE)
      for (let tries = 1; tries <= TRIES; tries++) {
        const schedule = await find(storage, name, scope)
        if (schedule.source !== null) throw ofCode(schedule)
        const content = contentWith(drafts, { name, content: schedule }, changes)
        const isAnew = !firesAlike(decodeDefinition(schedule.definition), decodeDefinition(content.definition))
        if (isAnew) await refuseOver(storage, name, content)
        const { version } = schedule
        const noted = drafts.noted('schedules.update', scope.as)
        const changed = await storage.change({ ...keyOf(name, scope), version, content, isAnew, ...noted })
        if (changed === null) continue
        onChange()
        return toSchedule(changed)
      }
      throw new ConflictError(`Schedule "${name}" keeps changing. Try again.`, '')
    },
    async pause(name, options = {}) {
      refuseUnknownOptions('pause()', options, { tenant: true, because: true, as: true })
      refuseBadText('because', options.because)
      const noted = drafts.noted('schedules.pause', options.as)
      return change({ ...keyOf(name, options), pausedBecause: options.because ?? 'by hand', isAnew: false, ...noted })
    },
    async resume(name, scope = {}) {
      refuseUnknownOptions('resume()', scope, SCOPE)
      const schedule = await find(storage, name, scope)
      if (schedule.pausedBecause === null) return toSchedule(schedule)
      const noted = drafts.noted('schedules.resume', scope.as)
      return change({ ...keyOf(name, scope), pausedBecause: null, isAnew: true, ...noted })
    },
    async remove(name, scope = {}) {
      refuseUnknownOptions('remove()', scope, SCOPE)
      const { audit } = drafts.noted('schedules.remove', scope.as)
      if (!(await storage.remove(keyOf(name, scope), audit))) throw noSchedule(name)
    },
  } satisfies Partial<ScheduleCommands>
}

function createReads({ storage }: CommandParams) {
  return {
    async get(name, scope = {}) {
      refuseUnknownOptions('get()', scope, TENANT)
      const found = await storage.get(keyOf(name, scope))
      return found === null ? null : toSchedule(found.schedule)
    },
    async list(filter = {}) {
      refuseBadFilter(filter)
      const { paused: isPaused, ended: isEnded, ...rest } = filter
      const given = Object.entries({ ...rest, isPaused, isEnded }).filter(([, value]) => value !== undefined)
      return (await storage.list(Object.fromEntries(given))).map(toSchedule)
    },
    async preview(of, count, scope = {}) {
      refuseUnknownOptions('preview()', scope, TENANT)
      const nowMs = Date.parse(await storageNow(storage))
      if (typeof of !== 'string') return previewOf(of, nowMs, count)
      return previewOfSchedule(await find(storage, of, scope), nowMs, count)
    },
    async explain(name, scope = {}) {
      refuseUnknownOptions('explain()', scope, TENANT)
      const found = await storage.get(keyOf(name, scope))
      return found === null ? `There is no schedule "${name}". It may have been removed.` : explainSchedule(found)
    },
  } satisfies Partial<ScheduleCommands>
}

function createRuns({ durably, storage }: CommandParams) {
  return {
    async runNow(name, scope = {}) {
      refuseUnknownOptions('runNow()', scope, SCOPE)
      const schedule = await find(storage, name, scope)
      const run = runAt(durably.drafts, readSchedule(schedule), null)
      const { audit } = durably.drafts.noted('schedules.runNow', scope.as)
      if (audit === undefined) await durably.storage.enqueue([run])
      else if (!(await storage.startByHand({ scheduleId: schedule.id, runs: [run], audit })).includes(run.id)) {
        // Somebody has removed it meanwhile.
        throw noSchedule(name)
      }
      durably.drafts.announce([run])
      return { id: run.id }
    },
    async backfill(name, options) {
      refuseBadBackfill(options)
      const { tenant } = options
      return backfill({ durably, storage }, await find(storage, name, { tenant }), options)
    },
  } satisfies Partial<ScheduleCommands>
}

const TENANT: OptionNames<TenantOption> = { tenant: true }
const SCOPE: OptionNames<ScheduleScope> = { ...TENANT, as: true }
const FILTER: OptionNames<ScheduleFilter> = {
  ...{ tenant: true, jobName: true, source: true, labels: true, paused: true, ended: true },
  ...{ limit: true, after: true },
}

const CREATED: OptionNames<ScheduleOptions & ScheduleScope> = { ...SCHEDULE, as: true }

function refuseBadFilter(filter: ScheduleFilter): void {
  refuseUnknownOptions('list()', filter, FILTER)
  const { tenant, jobName, source, labels, paused, ended, limit, after } = filter
  refuseBadConditions({ texts: { tenant, jobName, source }, flags: { paused, ended }, limit })
  if (labels !== undefined) requireLabels(labels, 'list()')
  refuseBadPlace(after, ['tenant', 'name'])
}

async function find(storage: ScheduleStorage, name: string, scope: TenantOption): Promise<ScheduleRecord> {
  const found = await storage.get(keyOf(name, scope))
  if (found === null) throw noSchedule(name)
  return found.schedule
}

async function refuseOver(storage: ScheduleStorage, name: string, content: ScheduleContent): Promise<void> {
  const over = await thoseOver(storage, [{ content }])
  if (over.length > 0) throw overAlready(name)
}

function keyOf(name: string, { tenant = '' }: TenantOption): ScheduleKey {
  refuseBadText('tenant', tenant)
  refuseBadText('The name of a schedule', name ?? null)
  return { tenant, name }
}

const LONGEST_NAME = 200

export function refuseBadName(name: string): void {
  if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME) {
    throw new InvalidOptionError(`A schedule needs a name of 1 to ${LONGEST_NAME} characters.`)
  }
  refuseBadText('The name of a schedule', name)
}

function noSchedule(name: string): NotFoundError {
  return new NotFoundError(`There is no schedule "${name}".`)
}

function ofCode({ name, source }: ScheduleRecord): ConflictError {
  return new ConflictError(
    `Schedule "${name}" is defined by the code of "${source}". Change it there, or pause it.`,
    '',
  )
}
