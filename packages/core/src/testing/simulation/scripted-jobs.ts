import {
  defineJob,
  type JobContext,
  type JobRef,
  type StepTools,
  type StreamEmit,
  type StreamTools,
  type TransactionTools,
} from '../../job'
import type { StandardSchema } from '../../base'
import { caughtText, LOST_OUTCOME, REFUSED_OUTPUT, type ScriptOutput, type ScriptResult, SLEPT } from './script-outcome'
import {
  type BodyPlayer,
  playBody,
  playStreamBody,
  playTransactionBody,
  type ScriptedJobsOptions,
} from './scripted-bodies'
import {
  JOB_POLICIES,
  type Script,
  type ScriptBranch,
  type ScriptChild,
  type ScriptedJobName,
  type ScriptStep,
  type ScriptStream,
  type ScriptTransaction,
  waitNameOf,
} from './scripts'

const SCRIPT_TIMEOUT_MS = 3000
const LONG_TIMEOUT_MS = 12_000

/**
 * Jobs that do what their payload says: `scripted`, `timed` with a time-out of 3 s, `strict` with a schema for its output,
 * `patient` with a retry policy, and `growing` with another and a time-out. The same script gives the same output
 * however often its workers die; `outcomeOf` says which.
 */
export function createScriptedJobs(options: ScriptedJobsOptions) {
  const execute = (ctx: JobContext, script: Script): Promise<ScriptOutput> => play({ ...options, ctx, jobs }, script)
  const policyOf = (name: ScriptedJobName) => JOB_POLICIES[name]
  const jobs = {
    scripted: defineJob({ name: 'scripted', input: anyScript }, execute),
    timed: defineJob({ name: 'timed', input: anyScript, timeout: SCRIPT_TIMEOUT_MS }, execute),
    strict: defineJob({ name: 'strict', input: anyScript, output: goodOutput }, execute),
    patient: defineJob({ name: 'patient', input: anyScript, retry: policyOf('patient') }, execute),
    growing: defineJob(
      { name: 'growing', input: anyScript, retry: policyOf('growing'), timeout: LONG_TIMEOUT_MS },
      execute,
    ),
  }
  return jobs
}

interface Player extends BodyPlayer {
  readonly jobs: Readonly<Record<ScriptedJobName, JobRef<Script, ScriptOutput>>>
}

type Entry = readonly [stepName: string, result: ScriptResult]

async function play(player: Player, { actions, badOutput }: Script): Promise<ScriptOutput> {
  const { ctx } = player
  const output: Entry[] = []
  for (const action of actions) {
    switch (action.kind) {
      case 'parallel':
        output.push(...(await Promise.all(action.branches.map((branch) => playBranch(player, branch)))))
        break
      case 'unawaited':
        playBranch(player, action.branch).catch(() => {})
        break
      case 'progress':
        ctx.progress(action.current, action.total)
        break
      case 'log':
        ctx.log.info(action.message)
        break
      case 'throw':
        if (ctx.attempt <= action.failsUntil) throw new Error(action.message)
        break
      default:
        output.push(await playBranch(player, action))
    }
  }
  return badOutput === true ? [['bad', REFUSED_OUTPUT]] : output
}

async function playBranch(player: Player, branch: ScriptBranch): Promise<Entry> {
  const { ctx } = player
  switch (branch.kind) {
    case 'step':
      return playStep(player, branch.step)
    case 'stream':
      return playStream(player, branch.step)
    case 'transaction':
      return playTransaction(player, branch.step)
    case 'sleep':
      await ctx.sleep(branch.name, typeof branch.ms === 'number' ? branch.ms : new Date(branch.ms.until))
      return [branch.name, SLEPT]
    case 'waitFor': {
      const { name, signal, timeout } = branch
      return caughtIf(branch, ctx.waitFor<ScriptResult>(name, { signal, timeout }))
    }
    case 'child':
      return caughtIf(branch, playChild(player, branch))
  }
}

async function playChild({ ctx, jobs }: Player, branch: ScriptChild): Promise<ScriptResult> {
  const { name, job, script, options } = branch
  return ctx.wait(waitNameOf(branch), await ctx.trigger(name, jobs[job], script, options))
}

interface Catching {
  readonly name: string
  readonly caught?: boolean
}

async function caughtIf({ name, caught }: Catching, result: Promise<ScriptResult>): Promise<Entry> {
  try {
    return [name, await result]
  } catch (error) {
    if (caught !== true) throw error
    return [name, caughtText((error as { message?: unknown }).message)]
  }
}

async function playStep(player: Player, step: ScriptStep): Promise<Entry> {
  const body = (tools: StepTools) => playBody(player, step, tools)
  const { name, once, retry, timeout } = step
  const result = player.ctx.run<ScriptResult>(name, { once, retry, timeout }, body)
  if (once !== true) return caughtIf(step, result)
  return caughtIf(
    step,
    result.catch((error: { code?: unknown }) => {
      if (error.code === 'INTERRUPTED') return LOST_OUTCOME
      throw error
    }),
  )
}

function playTransaction(player: Player, step: ScriptTransaction): Promise<Entry> {
  const { name, retry } = step
  const body = (rows: unknown, tools: TransactionTools) => playTransactionBody({ player, step, tools, rows })
  return caughtIf(step, player.ctx.transaction<ScriptResult>(name, { retry, timeout: 500 }, body))
}

function playStream(player: Player, step: ScriptStream): Promise<Entry> {
  const { name, retry, timeout } = step
  const body = (emit: StreamEmit, tools: StreamTools) => playStreamBody({ player, step, emit, tools })
  return caughtIf(step, player.ctx.stream<ScriptResult>(name, { retry, timeout }, body))
}

const anyScript: StandardSchema<Script> = {
  '~standard': { version: 1, vendor: 'durably', validate: (value) => ({ value: value as Script }) },
}

const goodOutput: StandardSchema<ScriptOutput> = {
  '~standard': {
    version: 1,
    vendor: 'durably',
    validate: (value) => {
      const isBad = Array.isArray(value) && value.some((entry) => Array.isArray(entry) && entry[1] === REFUSED_OUTPUT)
      return isBad ? { issues: [{ message: REFUSED_OUTPUT }] } : { value: value as ScriptOutput }
    },
  },
}
