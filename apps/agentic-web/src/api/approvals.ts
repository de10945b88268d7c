import type { Run, Step } from '@coji/durably'
import { signLink } from '@coji/durably-server'
import { Hono } from 'hono'
import { sql } from 'kysely'
import { z } from 'zod'
import { AGENT_JOB, type AgentInput, SESSION_LABEL } from '../agent/declaration'
import type { Turn } from '../agent/turn'
import { type Approval, decisionBodySchema } from '../contract'
import { readStepName } from '../step-names'
import { readBody } from './body'
import { invalid, notFound, RequestError } from './problem'
import { mine, requireRun, RUNS_PATH } from './runs'
import type { AppContext, AppEnv, Services } from './services'

const LINK_MS = 7 * 86_400_000

export function approvalRoutes(services: Services): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .get('/', async (context) => context.json({ approvals: await listApprovals(services, context) }))
    .post('/:runId/:name', async (context) => {
      await decide(services, context)
      return context.json({ ok: true })
    })
    .post('/:runId/:name/link', async (context) => context.json(await linkTo(services, context)))
}

/** A run that has gone on otherwise, on an older version perhaps, may have left a wait behind that nobody looks at. */
const IS_AWAITED = sql<boolean>`cast(run.waiting_for -> 'steps' as jsonb) @> to_jsonb(step.name)`

/** All of it in one statement, however many runs wait. */
async function listApprovals({ db }: Services, { var: { user } }: AppContext): Promise<Approval[]> {
  const rows = await db
    .selectFrom('durably_runs as run')
    .innerJoin('durably_run_labels as label', (join) =>
      join.onRef('label.run_id', '=', 'run.id').on('label.name', '=', SESSION_LABEL),
    )
    .innerJoin('sessions', (join) => join.onRef('session_id', '=', 'label.value').onRef('user_id', '=', 'run.tenant'))
    .innerJoin('durably_steps as step', 'step.run_id', 'run.id')
    .where('run.tenant', '=', user.id)
    .where('run.job_name', '=', AGENT_JOB)
    .where('run.status', '=', 'pending')
    .where(sql<boolean>`run.waiting_for ->> 'kind' = 'steps'`)
    .where('step.kind', 'in', ['stream', 'signal'])
    .where((where) => where.or([where('step.status', '!=', 'waiting'), IS_AWAITED]))
    .orderBy('run.created_at', 'desc')
    .orderBy('run.id', 'desc')
    .orderBy('step.index')
    .select(['run.id as run_id', 'session_id', 'title as session_title', 'step.name', 'step.status'])
    .select([sql<unknown>`step.output`.as('output'), sql<Date>`step.started_at`.as('startedAt')])
    .execute()
  const steps = new Map<string, (typeof rows)[number][]>(rows.map(({ run_id }) => [run_id, []]))
  for (const row of rows) steps.get(row.run_id)?.push(row)
  return rows.flatMap(({ startedAt, ...row }) => {
    return approvalOf(row, { steps: steps.get(row.run_id) ?? [], step: { ...row, startedAt: startedAt.toISOString() } })
  })
}

type Asking = Pick<Approval, 'run_id' | 'session_id' | 'session_title'>
type Told = Pick<Step, 'name' | 'status' | 'output'>

interface Waiting {
  readonly steps: readonly Told[]
  readonly step: Told & Pick<Step, 'startedAt'>
}

function approvalOf({ run_id, session_id, session_title }: Asking, { steps, step }: Waiting): Approval[] {
  const about = readStepName(step.name)
  if (step.status !== 'waiting' || about?.kind !== 'ask') return []
  const { call, name, why } = about
  const called = steps
    .flatMap(({ name: each, output }) => (readStepName(each)?.kind === 'turn' ? callsIn(output) : []))
    .find((each) => each.call === call)
  if (called === undefined) return []
  return [
    {
      ...{ run_id, session_id, session_title, name, why, call },
      tool: called.tool,
      arguments: argumentsNow(steps, called),
      since: step.startedAt,
    },
  ]
}

function callsIn(output: unknown): Turn['toolCalls'] {
  return (output as Turn | null)?.toolCalls ?? []
}

/** Those that somebody has edited already, else those of the model. */
function argumentsNow(steps: readonly Told[], called: Turn['toolCalls'][number]): unknown {
  const edited = steps.flatMap(({ name, status, output }) => {
    const about = readStepName(name)
    if (status !== 'completed' || about?.kind !== 'ask' || about.call !== called.call) return []
    const { arguments: given } = output as { readonly arguments?: unknown }
    return given === undefined ? [] : [given]
  })
  return edited.at(-1) ?? called.arguments
}

/** The run of the address, and what it waits for under that name. */
async function requireWaiting(services: Services, context: AppContext) {
  const run = await requireRun(services, context, context.req.param('runId'))
  const steps = await mine(services, context).getSteps(run.id)
  const name = context.req.param('name')
  const step = steps.find((each) => each.name === name && readStepName(each.name)?.kind === 'ask')
  if (step === undefined) throw notFound('approval')
  const { session_id } = run.payload as AgentInput
  const [approval] = approvalOf({ run_id: run.id, session_id, session_title: '' }, { steps, step })
  if (
    approval === undefined ||
    hasGoneOn(run, step.name) ||
    run.cancelRequestedAt !== null ||
    run.finishedAt !== null
  ) {
    throw new RequestError('CONFLICT', 'This was decided before, or its run has ended.')
  }
  return approval
}

/** It rests, and for something else. */
function hasGoneOn({ waitingFor }: Pick<Run, 'waitingFor'>, name: string): boolean {
  return waitingFor?.kind === 'steps' && !waitingFor.steps.includes(name)
}

async function decide(services: Services, context: AppContext): Promise<void> {
  const decision = await readBody(context, decisionBodySchema)
  const { run_id, name, tool } = await requireWaiting(services, context)
  if (decision.decision === 'stop') {
    await mine(services, context).cancel(run_id)
    return
  }
  if (decision.decision === 'approve' && decision.arguments !== undefined) {
    await requireArguments(services, tool, decision.arguments)
  }
  const { deduplicated } = await mine(services, context).signal(run_id, name, decision, {
    // That of signed links to this wait: whichever comes first counts, and the other is told that it came too late.
    dedupeKey: `link:${name}`,
  })
  if (deduplicated) throw new RequestError('CONFLICT', 'This was decided before.')
}

/** As the worker will look at them, which has the tool: it has told what they have to be. */
async function requireArguments({ db }: Services, tool: string, given: unknown): Promise<void> {
  const row = await db.selectFrom('tools').where('name', '=', tool).select('input').executeTakeFirst()
  if (row === undefined) return
  const { success, error } = z.fromJSONSchema(row.input as Parameters<typeof z.fromJSONSchema>[0]).safeParse(given)
  if (!success) throw invalid('arguments', error, 'VALIDATION')
}

async function linkTo(services: Services, context: AppContext) {
  const { run_id, name } = await requireWaiting(services, context)
  const { linkSecret: secret, publicUrl } = services.config
  const expires = new Date(Date.now() + LINK_MS)
  const link = (decision: 'approve' | 'refuse') =>
    signLink({ id: run_id }, name, { payload: { decision }, expires, secret, url: `${publicUrl}${RUNS_PATH}` })
  const [approve_url, refuse_url] = await Promise.all([link('approve'), link('refuse')])
  return { approve_url, refuse_url, expires_at: expires.toISOString() }
}
