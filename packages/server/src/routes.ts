import { isOwnJob, previewBulk, startBulk } from './bulk'
import { follow } from './follow'
import { hint } from './hints'
import { listJobs } from './jobs'
import { followLink, showLink } from './link'
import { countRuns, listAudit, listEvents, listLogs, listRuns, readHistory } from './list'
import { describeApi } from './openapi'
import type { Settings } from './options'
import { HttpProblem } from './problem'
import { route, runRoute, type Route } from './route'
import { CLUSTER_ROUTES } from './routes-cluster'
import { listWaits } from './waits'
import * as wire from './wire'
import { runEvents, runHints } from './wire-events'
import { mayShowWorkers } from './workers'

/** Who may retry may not therefore do again what somebody did to many runs. */
function ownJob(jobName: string): HttpProblem {
  return new HttpProblem('FORBIDDEN', `Runs of "${jobName}" are started by the server alone.`)
}

const trigger = route({
  method: 'POST',
  path: '/runs',
  action: 'trigger',
  summary: 'Triggers a run of a job.',
  body: wire.triggerBodySchema,
  status: 201,
  output: wire.triggeredRunSchema,
  async answer({ access, server, body }) {
    const { jobName, payload, options = {} } = body
    if (isOwnJob(jobName)) throw ownJob(jobName)
    const { deduplicated, ...run } = await access.runs.trigger(jobName, payload, options)
    return Object.assign({ deduplicated }, server.present.run(run))
  },
})

const batch = route({
  method: 'POST',
  path: '/runs/batch',
  action: 'trigger',
  summary: 'Triggers up to 1,000 runs of a job: all of them or none.',
  body: wire.batchTriggerBodySchema,
  status: 201,
  output: wire.triggeredListSchema,
  async answer({ access, server, body: { jobName, runs } }) {
    if (isOwnJob(jobName)) throw ownJob(jobName)
    const items = runs.map(({ payload, options }) => ({ payload, options }))
    const triggered = await access.runs.batchTrigger(jobName, items)
    return {
      runs: triggered.map(({ deduplicated, ...run }) => Object.assign({ deduplicated }, server.present.run(run))),
    }
  },
})

const list = route({
  method: 'GET',
  path: '/runs',
  action: 'read',
  summary: 'Lists runs, newest first, page by page.',
  query: wire.runListQuerySchema,
  output: wire.runPageSchema,
  answer: listRuns,
})

const get = runRoute({
  method: 'GET',
  path: '/runs/:id',
  action: 'read',
  summary: 'Reads a run.',
  output: wire.runSchema,
  answer: async ({ server, run }) => server.present.run(run),
})

const steps = runRoute({
  method: 'GET',
  path: '/runs/:id/steps',
  action: 'read',
  summary: 'Reads the steps of a run.',
  output: wire.stepListSchema,
  async answer({ access, server, run }) {
    const found = await access.runs.getSteps(run.id)
    return { steps: found.map((step) => server.present.step(step, run)) }
  },
})

const logs = runRoute({
  method: 'GET',
  path: '/runs/:id/logs',
  action: 'read',
  summary: 'Reads what a run logged, page by page.',
  query: wire.logListQuerySchema,
  output: wire.logListSchema,
  answer: listLogs,
})

const history = runRoute({
  method: 'GET',
  path: '/runs/:id/history',
  action: 'read',
  summary: 'Reads the events of a run, page by page.',
  query: wire.eventListQuerySchema,
  output: wire.eventListSchema,
  answer: listEvents,
})

const events = runRoute({
  method: 'GET',
  path: '/runs/:id/events',
  action: 'read',
  summary: 'Follows a run: its events as a stream that goes on after Last-Event-ID and says done at the end.',
  query: wire.followQuerySchema,
  output: runEvents,
  answer: follow,
})

const hints = route({
  method: 'GET',
  path: '/events',
  action: 'read',
  summary: 'Tells which runs change, as a stream of hints that may be lost or doubled: read anew what they name.',
  output: runHints,
  answer: hint,
})

const explain = runRoute({
  method: 'GET',
  path: '/runs/:id/explanation',
  action: 'read',
  summary: 'Says in words what a run is doing, or what it is waiting for.',
  output: wire.explanationSchema,
  async answer({ access, server, run }) {
    return { explanation: server.present.explanation(await access.runs.explain(run.id), run) }
  },
})

const cancel = runRoute({
  method: 'POST',
  path: '/runs/:id/cancel',
  action: 'cancel',
  summary: 'Cancels a run: at once when it waits, soon when it is running.',
  output: wire.runSchema,
  answer: async ({ access, server, run }) => server.present.run(await access.runs.cancel(run.id)),
})

const retry = runRoute({
  method: 'POST',
  path: '/runs/:id/retry',
  action: 'retry',
  summary: 'Starts a run again that failed, timed out or was cancelled. Its completed steps stay.',
  output: wire.runSchema,
  async answer({ access, server, run }) {
    if (isOwnJob(run.jobName)) throw ownJob(run.jobName)
    return server.present.run(await access.runs.retry(run.id))
  },
})

const fork = runRoute({
  method: 'POST',
  path: '/runs/:id/fork',
  action: 'fork',
  summary: 'Does a run again as another run: after a step that it completed, or with another payload.',
  body: wire.forkBodySchema,
  status: 201,
  output: wire.runSchema,
  async answer({ access, server, run, body }) {
    if (isOwnJob(run.jobName)) throw ownJob(run.jobName)
    return server.present.run(await access.runs.fork(run.id, body))
  },
})

const signal = runRoute({
  method: 'POST',
  path: '/runs/:id/signal',
  action: 'signal',
  summary: 'Hands a run what it waits for, or will.',
  body: wire.signalBodySchema,
  output: wire.signalAnswerSchema,
  answer: ({ access, run, body: { name, payload, dedupeKey } }) =>
    access.runs.signal(run.id, name, payload, { dedupeKey }),
})

const unpark = runRoute({
  method: 'POST',
  path: '/runs/:id/unpark',
  action: 'unpark',
  summary: 'Lets a parked run go on.',
  output: wire.runSchema,
  answer: async ({ access, server, run }) => server.present.run(await access.runs.unpark(run.id)),
})

const failParked = runRoute({
  method: 'POST',
  path: '/runs/:id/fail',
  action: 'unpark',
  summary: 'Ends a parked run as failed.',
  output: wire.runSchema,
  answer: async ({ access, server, run }) => server.present.run(await access.runs.failParked(run.id)),
})

const remove = runRoute({
  method: 'DELETE',
  path: '/runs/:id',
  action: 'delete',
  summary: 'Removes a run that has ended, with everything of it.',
  status: 204,
  output: null,
  answer: ({ access, run }) => access.runs.deleteRun(run.id),
})

const counts = route({
  method: 'GET',
  path: '/stats',
  action: 'read',
  summary: 'Counts runs by status, up to 10,000 of each; of single jobs up to 1,000.',
  query: wire.countQuerySchema,
  output: wire.countsSchema,
  answer: countRuns,
})

const statistics = route({
  method: 'GET',
  path: '/stats/history',
  action: 'read',
  summary:
    'Says by the hour or day how many runs ended how, how long they took and waited, as withStatistics() counts.',
  query: wire.statisticsQuerySchema,
  output: wire.statisticsSchema,
  answer: readHistory,
})

const waits = route({
  method: 'GET',
  path: '/waits',
  action: 'read',
  summary: 'Lists the runs that wait for somebody, newest first, and the signals they wait for.',
  query: wire.waitListQuerySchema,
  output: wire.waitListSchema,
  answer: listWaits,
})

const jobs = route({
  method: 'GET',
  path: '/jobs',
  action: 'read',
  summary: 'Lists the jobs that the server knows.',
  output: wire.jobListSchema,
  answer: listJobs,
})

const bulkPreview = route({
  method: 'POST',
  path: '/bulk/preview',
  action: 'read',
  summary: 'Counts the runs that a bulk action would be about.',
  body: wire.bulkBodySchema,
  output: wire.bulkPreviewSchema,
  answer: previewBulk,
})

const bulk = route({
  method: 'POST',
  path: '/bulk',
  action: 'read',
  summary: 'Cancels, retries or deletes many runs: a run that does it batch by batch. Needs that action as well.',
  body: wire.bulkBodySchema,
  status: 202,
  output: wire.runSchema,
  answer: async (call) => call.server.present.run(await startBulk(call)),
})

const audit = route({
  method: 'GET',
  path: '/audit',
  action: 'audit',
  summary: 'Lists what operators did, newest first, page by page.',
  query: wire.auditListQuerySchema,
  output: wire.auditListSchema,
  answer: listAudit,
})

const me = route({
  method: 'GET',
  path: '/me',
  action: 'read',
  summary: 'Says who asks, and what they may do.',
  output: wire.meSchema,
  async answer({ access, server }) {
    const { actor, tenant, actions } = access
    const { schedules, inbox, bulk } = server.settings
    const workers = mayShowWorkers(access, server)
    const served = { schedules: schedules !== null, inbox: inbox !== null, workers, bulk }
    return { actor, tenant, actions, history: server.durably.health().history, ...served }
  },
})

const link = route({
  method: 'GET',
  path: '/link',
  action: null,
  summary: 'Shows what a signed link would do, and asks.',
  query: wire.linkQuerySchema,
  output: 'page',
  answer: showLink,
})

const confirm = route({
  method: 'POST',
  path: '/link',
  action: null,
  summary: 'Does what a signed link is for, once.',
  query: wire.linkQuerySchema,
  output: 'page',
  answer: followLink,
})

/** What it takes to describe everything once is as much as a hundred answers. */
const documents = new WeakMap<Settings, ReturnType<typeof describeApi>>()

function documentOf(settings: Settings): ReturnType<typeof describeApi> {
  const document = documents.get(settings) ?? describeApi(ROUTES, settings)
  documents.set(settings, document)
  return document
}

const openApi = route({
  method: 'GET',
  path: '/openapi.json',
  action: 'read',
  summary: 'Describes this interface (OpenAPI 3.1).',
  output: wire.openApiSchema,
  answer: async ({ server }) => documentOf(server.settings),
})

/** Everything that is served, and nothing else. */
export const ROUTES: readonly Route[] = [
  ...[trigger, batch, list, get, steps, logs, history, events, explain],
  ...[cancel, retry, fork, signal, unpark, failParked, remove],
  ...[bulkPreview, bulk, audit],
  ...CLUSTER_ROUTES,
  ...[hints, counts, statistics, waits, jobs, link, confirm, me, openApi],
]
