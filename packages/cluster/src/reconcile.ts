import { ConflictError, InvalidOptionError, type Durably } from '@coji/durably-core'
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

/** Makes the stored schedules of a source what its code says. What left the code is paused, never deleted. */
export async function reconcile({ durably, storage, source, defined }: ReconcileParams): Promise<void> {
  const stored = new Map((await storage.list({ source })).map((record) => [keyOf(record), record]))
  const added = defined.filter((schedule) => !stored.has(keyOf(schedule)))
  await add({ durably, storage, source, defined: added })
  for (const schedule of defined) {
    const record = stored.get(keyOf(schedule))
    if (record !== undefined) await adjust(storage, record, schedule.content)
  }
  const names = new Set(defined.map(keyOf))
  for (const record of stored.values()) {
    if (names.has(keyOf(record)) || record.pausedBecause !== null) continue
    await storage.change({ ...identityOf(record), pausedBecause: LEFT_THE_CODE, isAnew: false })
  }
}

async function add({ durably, storage, source, defined }: ReconcileParams): Promise<void> {
  const late = await thoseOver(storage, defined)
  for (const { name } of late) durably.reportError(overAlready(name), 'schedules')
  const current = defined.filter((schedule) => !late.includes(schedule))
  const answers = await storage.create(
    current.map(({ tenant, name, content }) => {
      return { id: durably.drafts.environment.createId(), tenant, name, source, ...content }
    }),
  )
  for (const { schedule, created } of answers) {
    // Another process with the same code was faster.
    if (!created && schedule.source !== source) durably.reportError(nameTaken(schedule), 'schedules')
  }
}

/** The instants stay where they do not change. What was paused by hand stays paused. */
async function adjust(storage: ScheduleStorage, record: ScheduleRecord, content: ScheduleContent): Promise<void> {
  const hasReturned = record.pausedBecause === LEFT_THE_CODE
  const isSame =
    record.jobName === content.jobName &&
    record.payload === content.payload &&
    record.definition === content.definition &&
    record.overlap === content.overlap
  if (isSame && !hasReturned) return
  const isAlike = firesAlike(decodeDefinition(record.definition), decodeDefinition(content.definition))
  const resumed = hasReturned ? { pausedBecause: null } : {}
  await storage.change({ ...identityOf(record), content, ...resumed, isAnew: hasReturned || !isAlike })
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

export function nameTaken({ name, source }: ScheduleRecord): ConflictError {
  const by = source === null ? 'create()' : `the code of "${source}"`
  return new ConflictError(`There is a schedule "${name}" already, by ${by}. Give one of them another name.`, '')
}

function keyOf({ tenant, name }: { readonly tenant: string; readonly name: string }): string {
  return JSON.stringify([tenant, name])
}
