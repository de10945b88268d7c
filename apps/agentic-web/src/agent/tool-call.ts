import { InterruptedError, type StepTools } from '@coji/durably'
import { z } from 'zod'
import type { ToolCall } from '../contract'
import { stepNames } from '../step-names'
import { troubleWithMissing } from '../tools/known-tools'
import type { AnyTool } from '../tools/tool'
import { type AgentRun, keep } from './agent-job'
import { decisionSchema } from './declaration'
import { keepStaged, openFiles } from './session-files'

interface Outcome {
  readonly result: unknown
  readonly isError: boolean
  /** Where the files are that the call has written; they are kept with its result. */
  readonly staged?: string
}

interface Call {
  readonly call: ToolCall
  readonly position: number
}

const CALL_MS = 120_000
const LONGEST_RESULT = 200_000

/** Has a person agree where that is needed, calls the tool, and keeps what came of it. */
export async function carryOut(run: AgentRun, { call, position }: Call): Promise<void> {
  const { input } = run
  const { staged, ...done } = await decideAndCall(run, call)
  await keep(run, {
    what: `call ${call.call}`,
    position,
    content: { role: 'tool', call: call.call, tool: call.tool, ...done },
    // What a call has written whose outcome was lost, or that failed, is not kept.
    along: (trx) => keepStaged(trx, input, { callKey: callKeyOf(run, call), staged }),
  })
}

async function decideAndCall(run: AgentRun, call: ToolCall): Promise<Outcome & { readonly arguments: unknown }> {
  const found = run.tools.find(({ name }) => name === call.tool)
  let given = call.arguments
  if (await isToBeAsked(run, { call, isHere: found !== undefined })) {
    const decided = await ask(run, stepNames.approval(call.call))
    if (decided.decision === 'refuse') return { ...refused(decided.reason), arguments: given }
    given = decided.arguments ?? given
  }
  for (let tries = 1; ; tries++) {
    const tool = found ?? standIn(run, { tool: call.tool, tries })
    try {
      return { ...(await callOnce(run, { tool, call, given, tries })), arguments: given }
    } catch (error) {
      if (!(error instanceof InterruptedError)) throw error
      const decided = await ask(run, stepNames.interrupted(call.call, tries))
      if (decided.decision === 'refuse') return { ...refusedAgain(decided.reason), arguments: given }
      given = decided.arguments ?? given
    }
  }
}

interface Asking {
  readonly call: ToolCall
  readonly isHere: boolean
}

/** Nobody is asked about what could not be called anyway; who was asked before, by another worker, is waited for. */
async function isToBeAsked(run: AgentRun, { call, isHere }: Asking): Promise<boolean> {
  return call.needsApproval && (isHere || (await wasBegun(run, stepNames.approval(call.call))))
}

async function wasBegun({ ctx, db, input }: AgentRun, name: string): Promise<boolean> {
  const step = await db
    .selectFrom('durably_steps as step')
    .innerJoin('durably_runs as run', 'run.id', 'step.run_id')
    .where('run.id', '=', ctx.runId)
    .where('run.tenant', '=', input.user_id)
    .where('step.name', '=', name)
    .select('step.name')
    .executeTakeFirst()
  return step !== undefined
}

/** In the place of a tool that this worker has not. Another one may have begun the call: it is told of as any that has effects. */
function standIn({ db }: AgentRun, { tool, tries }: { readonly tool: string; readonly tries: number }): AnyTool {
  return {
    name: tool,
    description: '',
    input: z.unknown(),
    sideEffects: true,
    needsApproval: false,
    async execute() {
      throw new Error(await troubleWithMissing(db, { tool, isRepeated: tries > 1 }))
    },
  }
}

function ask({ ctx }: AgentRun, name: string) {
  return ctx.waitFor(name, { schema: decisionSchema })
}

interface OneCall {
  readonly tool: AnyTool
  readonly call: ToolCall
  readonly given: unknown
  readonly tries: number
}

async function callOnce(run: AgentRun, { tool, call, given, tries }: OneCall): Promise<Outcome> {
  const { success, data, error } = tool.input.safeParse(given)
  const name = stepNames.tool(call.call, tries)
  if (!success) return run.ctx.run(name, async () => failed(`These arguments make no sense: ${error.message}`))
  return run.ctx.run(name, { once: tool.sideEffects }, async (step) =>
    execute(run, { tool, input: data, idempotencyKey: callKeyOf(run, call) }, step),
  )
}

interface Execution {
  readonly tool: AnyTool
  readonly input: unknown
  readonly idempotencyKey: string
}

/** What a tool throws is for the model to read; that the run has to end here is not. */
async function execute(
  { db, ctx, input: run }: AgentRun,
  { tool, input, idempotencyKey }: Execution,
  step: StepTools,
): Promise<Outcome> {
  const files = openFiles(db, run)
  const signal = AbortSignal.any([step.signal, AbortSignal.timeout(CALL_MS)])
  const context = { runId: ctx.runId, sessionId: run.session_id, userId: run.user_id }
  try {
    const result = toJson(await tool.execute(input as never, { ...context, signal, files, idempotencyKey }))
    const staged = await files.stage(idempotencyKey)
    return { result, isError: false, ...(staged !== null && { staged }) }
  } catch (error) {
    if (step.signal.aborted) throw error
    return failed(signal.aborted ? `It took longer than ${CALL_MS / 1000} s.` : String(Object(error).message ?? error))
  }
}

function toJson(value: unknown): unknown {
  const text = JSON.stringify(value ?? null)
  if (text.length <= LONGEST_RESULT) return JSON.parse(text)
  throw new Error(`The result has ${text.length} characters, and may have ${LONGEST_RESULT}.`)
}

/** The same whatever the model calls it, and however often the call is started. */
function callKeyOf({ ctx }: AgentRun, { call }: ToolCall): string {
  return `${ctx.runId}/${call}`
}

function failed(message: string): Outcome {
  return { result: message, isError: true }
}

function refused(reason: string | undefined): Outcome {
  return failed(`The user has refused this call${because(reason)}`)
}

function refusedAgain(reason: string | undefined): Outcome {
  return failed(
    `The call was interrupted, nobody knows whether it was carried out, and the user does not want it again${because(reason)}`,
  )
}

function because(reason: string | undefined): string {
  return reason === undefined || reason === '' ? '.' : `: ${reason}`
}
