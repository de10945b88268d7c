import { countMessages, listMessages, replayMessages } from './messages'
import { route, type Route } from './route'
import { listSchedules, pauseSchedule, resumeSchedule, runSchedule } from './schedules'
import * as wire from './wire-cluster'
import { listWorkers } from './workers'

const schedules = route({
  method: 'GET',
  path: '/schedules',
  action: 'read',
  summary: 'Lists schedules by tenant and name, page by page.',
  query: wire.scheduleListQuerySchema,
  output: wire.schedulePageSchema,
  answer: listSchedules,
})

const pause = route({
  method: 'POST',
  path: '/schedules/pause',
  action: 'schedule',
  summary: 'Pauses a schedule: it fires no more until it is resumed.',
  body: wire.schedulePauseBodySchema,
  output: wire.scheduleSchema,
  answer: pauseSchedule,
})

const resume = route({
  method: 'POST',
  path: '/schedules/resume',
  action: 'schedule',
  summary: 'Resumes a schedule: it fires again from now on.',
  body: wire.scheduleBodySchema,
  output: wire.scheduleSchema,
  answer: resumeSchedule,
})

const runNow = route({
  method: 'POST',
  path: '/schedules/run',
  action: 'trigger',
  summary: 'Creates a run of a schedule at once, beside its instants.',
  body: wire.scheduleBodySchema,
  status: 201,
  output: wire.scheduleRunSchema,
  answer: runSchedule,
})

const messages = route({
  method: 'GET',
  path: '/inbox',
  action: 'read',
  summary: 'Lists messages, the oldest first, page by page.',
  query: wire.messageListQuerySchema,
  output: wire.messagePageSchema,
  answer: listMessages,
})

const messageCounts = route({
  method: 'GET',
  path: '/inbox/stats',
  action: 'read',
  summary: 'Counts messages.',
  query: wire.tenantQuerySchema,
  output: wire.messageCountsSchema,
  answer: countMessages,
})

const replay = route({
  method: 'POST',
  path: '/inbox/replay',
  action: 'replay',
  summary: 'Sends delivered messages out anew: each job that wants them now gets a new run of each.',
  body: wire.replayBodySchema,
  output: wire.replayAnswerSchema,
  answer: replayMessages,
})

const workers = route({
  method: 'GET',
  path: '/workers',
  action: 'read',
  summary: 'Lists the workers of the cluster, and who leads it. For those who see the runs of all tenants.',
  output: wire.workerListSchema,
  answer: listWorkers,
})

/** What is served where the handler was given schedules, an inbox or a cluster. */
export const CLUSTER_ROUTES: readonly Route[] = [
  ...[schedules, pause, resume, runNow],
  ...[messages, messageCounts, replay, workers],
]
