import type {
  DueSchedule,
  DueSchedules,
  Firing,
  FiringAnswer,
  Lead,
  NewSchedule,
  ScheduleChange,
  ScheduleQuery,
  ScheduleRecord,
  ScheduleStorage,
} from '../port'
import type { Operations } from './cluster'
import { enqueueOne } from './enqueue'
import { isBefore } from './in-order'
import type { Memory } from './memory'

export function createSchedules(memory: Memory, { read, write }: Operations): ScheduleStorage {
  const { schedules } = memory
  return {
    create: (list) => write(() => list.map((schedule) => create(memory, schedule))),
    change: (params) => write(() => change(memory, params)),
    remove: (key) =>
      write(() => {
        const found = schedules.findByName(key)
        if (found !== undefined) schedules.remove(found)
        return found !== undefined
      }),
    get: (key) =>
      read(() => {
        const found = schedules.findByName(key)
        return found === undefined ? null : withOpenRuns(memory, found)
      }),
    list: (query) => read(() => list(memory, query)),
    due: (limit) => read(() => due(memory, limit)),
    fire: (lead, firings) => write(() => firings.map((firing) => fire(memory, lead, firing))),
  }
}

function create({ schedules, clock }: Memory, schedule: NewSchedule) {
  const now = clock.now()
  const holder = schedules.findByName(schedule)
  if (holder !== undefined) return { schedule: holder, created: holder.id === schedule.id }
  const times = { firedUntil: now, nextAt: null, dueAt: now, createdAt: now, updatedAt: now, endedAt: null }
  const record = { ...schedule, version: 1, pausedBecause: null, ...times, fired: 0, missed: 0 }
  return { schedule: schedules.put(record), created: true }
}

function change({ schedules, clock }: Memory, params: ScheduleChange): ScheduleRecord | null {
  const before = schedules.findByName(params)
  if (before === undefined || (params.version ?? before.version) !== before.version) return null
  const now = clock.now()
  const { content, source = before.source, pausedBecause = before.pausedBecause, isAnew } = params
  const times = isAnew
    ? { firedUntil: now, nextAt: null, dueAt: pausedBecause === null ? now : null, endedAt: null }
    : { dueAt: pausedBecause === null ? before.dueAt : null }
  const version = before.version + 1
  return schedules.put({ ...before, ...content, source, pausedBecause, ...times, version, updatedAt: now })
}

function list({ schedules }: Memory, { tenant, source, jobName, limit, after }: ScheduleQuery) {
  return schedules
    .all()
    .filter((each) => tenant === undefined || each.tenant === tenant)
    .filter((each) => source === undefined || each.source === source)
    .filter((each) => jobName === undefined || each.jobName === jobName)
    .filter((each) => after === undefined || isBefore([after.tenant, after.name], [each.tenant, each.name]))
    .sort((a, b) => (isBefore([a.tenant, a.name], [b.tenant, b.name]) ? -1 : 1))
    .slice(0, limit)
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

function fire(memory: Memory, lead: Lead, firing: Firing): FiringAnswer {
  const { schedules, clock, leads } = memory
  const { scheduleId, version, runs, firedUntil, nextAt, missed } = firing
  const before = schedules.find(scheduleId)
  const isAsRead = before !== undefined && before.version === version
  if (!isAsRead || !leads.isCurrent(lead)) return { kept: false, created: [] }
  const created = runs.map((run) => enqueueOne(memory, run)).filter(({ created }) => created)
  const now = clock.now()
  const counts = { fired: before.fired + runs.length, missed: before.missed + missed }
  const times = { firedUntil, nextAt, dueAt: nextAt, updatedAt: now, endedAt: nextAt === null ? now : null }
  schedules.put({ ...before, ...counts, ...times, version: version + 1 })
  return { kept: true, created: created.map(({ entry }) => entry.record.id) }
}

function withOpenRuns({ table }: Memory, schedule: ScheduleRecord): DueSchedule {
  const open = schedule.overlap === 'allow' ? [] : table.scheduled.openOf(schedule.id)
  return { schedule, openRuns: open.map(({ id, scheduledFor }) => ({ id, scheduledFor })) }
}
