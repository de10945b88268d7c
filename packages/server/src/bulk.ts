import {
  ConflictError,
  defineJob,
  NotFoundError,
  type Durably,
  type JobContext,
  type JobDefinition,
  type Run,
  type RunCursor,
  type RunFilter,
  type ScopedDurably,
} from '@coji/durably-core'
import type { RunDrafts } from '@coji/durably-core/extend'
import { z } from 'zod'
import { runsOf } from './access'
import { mostCounted } from './list'
import { HttpProblem } from './problem'
import type { Call } from './route'
import { bulkBodySchema } from './wire'

/** Jobs of these names are the server's own: nobody triggers them, or starts them again with other payloads, over HTTP. */
const OWN = 'durably:'
/** The job whose runs do something to many runs. */
export const BULK_JOB = 'durably:bulk'

export function isOwnJob(jobName: string): boolean {
  return jobName.startsWith(OWN)
}

type BulkCall = Call<unknown, z.output<typeof bulkBodySchema>>

/** Few enough for a batch to be over soon, so that a crash repeats little. */
const BATCH = 100

const payloadSchema = bulkBodySchema.extend({
  actor: z.string().nullable(),
  /** Whose runs: those of the tenant of this run itself, or everybody's. */
  isForEverybody: z.boolean(),
  expected: z.int(),
})

/** What the run of a bulk action comes to. */
export interface BulkResult {
  readonly done: number
  /** Not in a state for it (any more), or gone. */
  readonly skipped: number
}

interface Batch extends BulkResult {
  readonly last: RunCursor | null
}

/** `POST /bulk/preview` */
export async function previewBulk(call: BulkCall) {
  const filter = filterOf(call)
  const most = mostCounted(filter)
  const count = await countOf(call.access.runs, filter)
  return { count: Math.min(count, most), isMore: count >= most }
}

/** `POST /bulk`: a run that does it batch by batch, and tells how far it is. */
export async function startBulk(call: BulkCall): Promise<Run> {
  const { access, body } = call
  const { actor, tenant, actions, runs } = access
  if (!actions.includes(body.action))
    throw new HttpProblem('FORBIDDEN', `You may not do this: it needs "${body.action}".`)
  const filter = filterOf(call)
  const expected = await countOf(runs, filter)
  const payload = { action: body.action, filter, actor, isForEverybody: tenant === null, expected }
  const { deduplicated: _, ...run } = await runs.trigger(BULK_JOB, payload)
  return run
}

function filterOf({ access: { tenant }, body: { filter }, server }: BulkCall) {
  if (!server.settings.bulk) throw new HttpProblem('NOT_SERVED', 'Bulk actions are not served here.')
  const own = [filter.jobName ?? []].flat().find(isOwnJob)
  if (own !== undefined) throw new HttpProblem('FORBIDDEN', `Runs of "${own}" are for the server alone.`)
  if (tenant === null || filter.tenant === undefined || filter.tenant === tenant) return filter
  throw new HttpProblem('FORBIDDEN', 'These are runs of somebody else.')
}

async function countOf(runs: Pick<ScopedDurably, 'counts'>, filter: RunFilter): Promise<number> {
  const { waitsForRetry: _, parked: __, ...byStatus } = await runs.counts({ ...filter, upTo: mostCounted(filter) })
  return Object.values(byStatus).reduce((sum, count) => sum + count, 0)
}

/**
 * The job that bulk actions are runs of. `createDurablyHandler` registers it on its instance; an instance of another process
 * that executes runs needs it as well: `durably.register({ bulk: bulkJob(durably) })`.
 */
export function bulkJob(durably: Durably): JobDefinition<typeof BULK_JOB, z.input<typeof payloadSchema>, BulkResult> {
  return defineJob({ name: BULK_JOB, input: payloadSchema }, async (ctx, payload) => {
    const { action, filter, isForEverybody, expected, actor } = payload
    const { breathe } = durably.drafts
    const own = await durably.getRun(ctx.runId)
    if (own === null) throw NotFoundError.run(ctx.runId)
    const runs = runsOf(durably, { actor, tenant: isForEverybody ? null : own.tenant })
    // Nothing that came after the request, and so not this run itself either: in a list it is what comes behind this run.
    const start = { createdAt: own.createdAt, id: own.id }
    return inBatches(ctx, { expected, start, next: (from) => batch(runs, { action, filter, from, breathe }) })
  })
}

interface Batches {
  readonly expected: number
  readonly start: RunCursor
  next(from: RunCursor): Promise<Batch>
}

async function inBatches(ctx: JobContext, { expected, start, next }: Batches): Promise<BulkResult> {
  let [done, skipped] = [0, 0]
  let from = start
  for (let n = 1; ; n++) {
    const place = from
    const { last, ...tally }: Batch = await ctx.run(`batch ${n}`, () => next(place))
    done += tally.done
    skipped += tally.skipped
    ctx.progress(done + skipped, Math.max(expected, done + skipped))
    if (last === null) return { done, skipped }
    from = last
  }
}

interface BatchParams {
  readonly action: z.output<typeof bulkBodySchema>['action']
  readonly filter: RunFilter
  readonly from: RunCursor
  readonly breathe: RunDrafts['breathe']
}

async function batch(runs: ScopedDurably, { action, filter, from, breathe }: BatchParams): Promise<Batch> {
  const page = await runs.getRuns({ ...filter, cursor: from, limit: BATCH })
  let done = 0
  for (const run of page) {
    await breathe()
    if (await isDone(runs, action, run)) done += 1
  }
  const last = page.length < BATCH ? undefined : page.at(-1)
  const next = last === undefined ? null : { createdAt: last.createdAt, id: last.id }
  return { done, skipped: page.length - done, last: next }
}

/** The guard of each command sees the run as it is now. A bulk action of somebody else acts in their name. */
async function isDone(runs: ScopedDurably, action: BatchParams['action'], { id, jobName }: Run): Promise<boolean> {
  if (isOwnJob(jobName)) return false
  try {
    if (action === 'cancel') await runs.cancel(id)
    else if (action === 'retry') await runs.retry(id)
    else await runs.deleteRun(id)
    return true
  } catch (error) {
    if (error instanceof ConflictError || error instanceof NotFoundError) return false
    throw error
  }
}
