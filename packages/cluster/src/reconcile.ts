import { ConflictError, InvalidOptionError, StorageError, type Durably } from '@coji/durably-core'
import type { ScheduleContent, ScheduleRecord, ScheduleStorage } from '@coji/durably-core/storage'
import { decodeDefinition, firesAlike } from './definition'
import { storageNow } from './storage-now'

/** A schedule as the code has it. */
export interface DefinedSchedule {
  readonly tenant: string
  readonly name: string
  readonly content: ScheduleContent
}

export interface ReconcileParams {
  readonly durably: Durably
  readonly storage: ScheduleStorage
  readonly source: string
  readonly defined: readonly DefinedSchedule[]
}

/** What a schedule is paused for that no code defines any more. */
export const LEFT_THE_CODE = 'it left the code'

const TRIES = 5

/** What one walk through the schedules led to. */
interface Walk {
  /** Nothing was changed by somebody else between its look and its write. */
  isWhole: boolean
  readonly errors: Error[]
}

/** Makes the stored schedules of a source what its code says. What left the code is paused, never deleted. */
export async function reconcile(params: ReconcileParams): Promise<void> {
  // Where another process has the lead already, they fire and change meanwhile.
  for (let tries = 1; tries <= TRIES; tries++) {
    const { isWhole, errors } = await walk(params)
    if (!isWhole) continue
    for (const error of errors) params.durably.reportError(error, 'schedules')
    return
  }
  throw keepsChanging(params.source)
}

async function walk(params: ReconcileParams): Promise<Walk> {
  const { storage, source, defined } = params
  const stored = new Map((await storage.list({ source })).map((record) => [keyOf(record), record]))
  const added = defined.filter((schedule) => !stored.has(keyOf(schedule)))
  const made: Walk = { isWhole: true, errors: await add({ ...params, defined: added }) }
  for (const schedule of defined) {
    const record = stored.get(keyOf(schedule))
    if (record === undefined) continue
    const became = await adjust(storage, record, schedule.content)
    if (became === 'moved') made.isWhole = false
    if (became === 'over') made.errors.push(overAlready(schedule.name))
  }
  const names = new Set(defined.map(keyOf))
  for (const record of stored.values()) {
    if (names.has(keyOf(record)) || record.pausedBecause !== null) continue
    const paused = await storage.change({ ...identityOf(record), pausedBecause: LEFT_THE_CODE, isAnew: false })
    if (paused === null) made.isWhole = false
  }
  return made
}

/** Answers what there is to tell of those that could not be added. */
async function add({ durably, storage, source, defined }: ReconcileParams): Promise<Error[]> {
  const late = await thoseOver(storage, defined)
  const current = defined.filter((schedule) => !late.includes(schedule))
  const answers = await storage.create(
    current.map(({ tenant, name, content }) => {
      return { id: durably.drafts.environment.createId(), tenant, name, source, ...content }
    }),
  )
  // One of this source was added by another process with the same code, which was faster.
  const taken = answers.filter(({ schedule, created }) => !created && schedule.source !== source)
  return [...late.map(({ name }) => overAlready(name)), ...taken.map(({ schedule }) => nameTaken(schedule))]
}

/** `moved`: it is not as it was listed any more. `over`: the code has given it times that have all passed. */
type Adjusted = 'done' | 'moved' | 'over'

/** The instants stay where they do not change. What was paused by hand stays paused. */
async function adjust(storage: ScheduleStorage, record: ScheduleRecord, content: ScheduleContent): Promise<Adjusted> {
  const hasReturned = record.pausedBecause === LEFT_THE_CODE
  const isSame =
    record.jobName === content.jobName &&
    record.payload === content.payload &&
    record.definition === content.definition &&
    record.overlap === content.overlap
  if (isSame && !hasReturned) return 'done'
  const isAlike = firesAlike(decodeDefinition(record.definition), decodeDefinition(content.definition))
  if (!isAlike && (await thoseOver(storage, [{ content }])).length > 0) return 'over'
  const resumed = hasReturned ? { pausedBecause: null } : {}
  const isAnew = hasReturned || !isAlike
  const changed = await storage.change({ ...identityOf(record), content, ...resumed, isAnew })
  return changed === null ? 'moved' : 'done'
}

function identityOf({ tenant, name, version }: ScheduleRecord) {
  return { tenant, name, version }
}

/** Those of which every instant has passed. */
export async function thoseOver<T extends { readonly content: ScheduleContent }>(
  storage: ScheduleStorage,
  schedules: readonly T[],
): Promise<readonly T[]> {
  if (schedules.every(({ content }) => lastOf(content) === null)) return []
  const now = await storageNow(storage)
  return schedules.filter(({ content }) => (lastOf(content) ?? FOR_EVER) <= now)
}

const FOR_EVER = 'z'

function lastOf({ definition }: ScheduleContent): string | null {
  const { timing, end } = decodeDefinition(definition)
  if (timing.kind !== 'at' || (end !== null && end < timing.at)) return end
  return timing.at
}

export function overAlready(name: string): InvalidOptionError {
  return new InvalidOptionError(`Schedule "${name}" would never fire: its time is over. Nothing was stored.`)
}

function keepsChanging(source: string): StorageError {
  const why = 'somebody else changes them all the time. It is tried again.'
  return new StorageError('STORAGE_BUSY', `The schedules of the code of "${source}" were not all stored: ${why}`)
}

export function nameTaken({ name, source }: ScheduleRecord): ConflictError {
  const by = source === null ? 'create()' : `the code of "${source}"`
  return new ConflictError(`There is a schedule "${name}" already, by ${by}. Give one of them another name.`, '')
}

function keyOf({ tenant, name }: { readonly tenant: string; readonly name: string }): string {
  return JSON.stringify([tenant, name])
}
