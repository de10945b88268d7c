import {
  type AuditNote,
  auditViewOfSchedule,
  type DueSchedule,
  type DueSchedules,
  type EndingEvents,
  type Firing,
  type FiringAnswer,
  type Lead,
  type NewSchedule,
  type RunRecord,
  type ScheduleChange,
  type ScheduleQuery,
  type ScheduleRecord,
  type ScheduleStorage,
  type StartByHand,
} from '../port'
import type { Operations } from './cluster'
import { cancel } from './commands'
import { enqueueOne } from './enqueue'
import { isBefore } from './in-order'
import { copyOf, type Memory } from './memory'

export function createSchedules(memory: Memory, { read, write }: Operations): ScheduleStorage {
  const { schedules } = memory
  return {
    create: (list, audit) => write(() => list.map((schedule) => create(memory, schedule, audit))),
    change: (params) => write(() => change(memory, params)),
    remove: (key, audit) =>
      write(() => {
        const found = schedules.findByName(key)
        if (found === undefined) return false
        schedules.remove(found)
        note(memory, audit, { before: found, after: null })
        return true
      }),
    get: (key) =>
      read(() => {
        const found = schedules.findByName(key)
        return found === undefined ? null : withOpenRuns(memory, found)
      }),
    list: (query) => read(() => list(memory, query)),
    due: (limit) => read(() => due(memory, limit)),
    fire: (lead, firings, events = NO_EVENTS) =>
      write(() => firings.map((firing) => fire(memory, lead, { firing, events }))),
    purge: (lead, { olderThanMs, limit }) =>
      write(() => (memory.leads.isCurrent(lead) ? purge(memory, olderThanMs, limit) : 0)),
    startByHand: (start) => write(() => startByHand(memory, start)),
  }
}

function create(memory: Memory, schedule: NewSchedule, audit: AuditNote | undefined) {
  const { schedules, clock } = memory
  const now = clock.now()
  const holder = schedules.findByName(schedule)
  if (holder !== undefined) return { schedule: holder, created: holder.id === schedule.id }
  const times = { firedUntil: now, nextAt: null, dueAt: now, createdAt: now, updatedAt: now, endedAt: null }
  const record = { ...schedule, version: 1, pausedBecause: null, ...times, fired: 0, missed: 0 }
  const stored = schedules.put(record)
  note(memory, audit, { before: null, after: stored })
  return { schedule: stored, created: true }
}

function change(memory: Memory, params: ScheduleChange): ScheduleRecord | null {
  const { schedules, clock } = memory
  const before = schedules.findByName(params)
  if (before === undefined || (params.version ?? before.version) !== before.version) return null
  const now = clock.now()
  const { content, source = before.source, pausedBecause = before.pausedBecause, isAnew } = params
  const times = isAnew
    ? { firedUntil: now, nextAt: null, dueAt: pausedBecause === null ? now : null, endedAt: null }
    : { dueAt: pausedBecause === null ? before.dueAt : null }
  const version = before.version + 1
  const after = schedules.put({ ...before, ...content, source, pausedBecause, ...times, version, updatedAt: now })
  note(memory, params.audit, { before, after })
  return after
}

interface Noted {
  readonly before: ScheduleRecord | null
  readonly after: ScheduleRecord | null
}

function note({ audit }: Memory, by: AuditNote | undefined, { before, after }: Noted): void {
  const of = before ?? after
  if (by === undefined || of === null) return
  const [was, is] = [before, after].map((record) => (record === null ? null : auditViewOfSchedule(record)))
  const { tenant, name: target } = of
  audit.add(by, { tenant, targetKind: 'schedule', target, before: was ?? null, after: is ?? null })
}

function startByHand(memory: Memory, { scheduleId, runs, audit }: StartByHand): readonly string[] {
  const schedule = memory.schedules.find(scheduleId)
  if (schedule === undefined) return []
  const created = runs.map((run) => enqueueOne(memory, run)).filter((answer) => answer.created)
  const ids = created.map(({ entry }) => entry.record.id)
  const { tenant, name: target } = schedule
  const of = { tenant, targetKind: 'schedule', target, before: null } as const
  if (ids.length > 0) memory.audit.add(audit, { ...of, after: { runs: ids } })
  return ids
}

function list({ schedules }: Memory, { limit, after, ...query }: ScheduleQuery) {
  const { tenant, source, jobName, labels = {}, isPaused, isEnded } = query
  return schedules
    .all()
    .filter((each) => tenant === undefined || each.tenant === tenant)
    .filter((each) => source === undefined || each.source === source)
    .filter((each) => jobName === undefined || each.jobName === jobName)
    .filter((each) => Object.entries(labels).every(([name, value]) => labelsOf(each)[name] === value))
    .filter((each) => isPaused === undefined || (each.pausedBecause !== null) === isPaused)
    .filter((each) => isEnded === undefined || (each.endedAt !== null) === isEnded)
    .filter((each) => after === undefined || isBefore([after.tenant, after.name], [each.tenant, each.name]))
    .sort((a, b) => (isBefore([a.tenant, a.name], [b.tenant, b.name]) ? -1 : 1))
    .slice(0, limit)
}

function labelsOf({ definition }: ScheduleRecord): Readonly<Record<string, string>> {
  const { run } = JSON.parse(definition) as { readonly run?: { readonly labels?: Readonly<Record<string, string>> } }
  return run?.labels ?? {}
}

function purge({ schedules, clock }: Memory, olderThanMs: number, limit: number): number {
  const before = clock.in(-olderThanMs)
  const isOver = ({ source, endedAt }: ScheduleRecord) => source === null && endedAt !== null && endedAt <= before
  const over = schedules.all().filter(isOver).slice(0, limit)
  for (const each of over) schedules.remove(each)
  return over.length
}

function due(memory: Memory, limit: number): DueSchedules {
  const now = memory.clock.now()
  const waiting = memory.schedules.all().filter(({ dueAt }) => dueAt !== null)
  const isDue = ({ dueAt }: ScheduleRecord) => dueAt !== null && dueAt <= now
  const first = waiting
    .filter(isDue)
    .sort((a, b) => (isBefore([a.dueAt ?? '', a.id], [b.dueAt ?? '', b.id]) ? -1 : 1))
    .slice(0, limit)
  const later = waiting.filter((each) => !isDue(each)).map(({ dueAt }) => dueAt ?? '')
  const next = later.reduce<string | null>(
    (soonest, each) => (soonest !== null && soonest < each ? soonest : each),
    null,
  )
  return {
    now,
    schedules: first.map((schedule) => withOpenRuns(memory, schedule)),
    nextInMs: next === null ? null : memory.clock.until(next),
  }
}

const NO_EVENTS: EndingEvents = { cancelled: [], requested: [] }

interface ToldFiring {
  readonly firing: Firing
  readonly events: EndingEvents
}

function fire(memory: Memory, lead: Lead, { firing, events }: ToldFiring): FiringAnswer {
  const { schedules, clock, leads } = memory
  const { scheduleId, version, runs, firedUntil, nextAt, missed, ends } = firing
  const before = schedules.find(scheduleId)
  const isAsRead = before !== undefined && before.version === version
  if (!isAsRead || !leads.isCurrent(lead)) return { kept: false, created: [], ended: [] }
  const created = runs.map((run) => enqueueOne(memory, run)).filter(({ created }) => created)
  const ended = ends.flatMap((runId) => end(memory, { scheduleId, runId, events }))
  const now = clock.now()
  const counts = { fired: before.fired + runs.length, missed: before.missed + missed }
  const times = { firedUntil, nextAt, dueAt: nextAt, updatedAt: now, endedAt: nextAt === null ? now : null }
  schedules.put({ ...before, ...counts, ...times, version: version + 1 })
  return { kept: true, created: created.map(({ entry }) => entry.record.id), ended }
}

interface Ending {
  readonly scheduleId: string
  readonly runId: string
  readonly events: EndingEvents
}

/** None of another schedule. */
function end(memory: Memory, { scheduleId, runId, events }: Ending): readonly RunRecord[] {
  const entry = memory.table.find(runId)
  const run = entry?.record.scheduleId === scheduleId ? cancel(memory, entry, { events }) : null
  return run === null ? [] : [copyOf(run)]
}

function withOpenRuns({ table }: Memory, schedule: ScheduleRecord): DueSchedule {
  const open = schedule.overlap === 'allow' ? [] : table.scheduled.openOf(schedule.id)
  return { schedule, openRuns: open.map(({ id, scheduledFor }) => ({ id, scheduledFor })) }
}
