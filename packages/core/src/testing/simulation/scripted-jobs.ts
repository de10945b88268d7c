import type { JobContext } from '../../context'
import { defineJob } from '../../define-job'
import type { Clock } from '../../environment'
import type { StandardSchema } from '../../schema'
import type { StepTools } from '../../step-tools'

/** One step of a script. Without anything else it succeeds at once with its value. */
export interface ScriptStep {
  readonly name: string
  readonly value: number
  /** How long the body takes. */
  readonly ms?: number
  /** The body throws while the run's attempt is at or below this. */
  readonly failsUntil?: number
  /** The job catches whatever the step rejects with and goes on. */
  readonly caught?: boolean
  /** Runs at most once; the job takes the lost outcome for a result. */
  readonly once?: boolean
  /** So many checkpoints on the way; the next start goes on after the last one. */
  readonly saves?: number
  readonly logs?: number
  /** The body does not notice that it should stop. */
  readonly ignoresSignal?: boolean
}

/** What a step of a script does. */
export type ScriptAction =
  | { readonly kind: 'step'; readonly step: ScriptStep }
  | { readonly kind: 'parallel'; readonly steps: readonly ScriptStep[] }
  /** Begun, never awaited by the job. It must not fail: whether the run still hears of it is a matter of time. */
  | { readonly kind: 'unawaited'; readonly step: ScriptStep }
  | { readonly kind: 'progress'; readonly current: number; readonly total: number }
  | { readonly kind: 'log'; readonly message: string }
  /** The job itself throws, while its attempt is at or below this. */
  | { readonly kind: 'throw'; readonly message: string; readonly failsUntil: number }

/** What a scripted job does, as its payload. */
export interface Script {
  readonly actions: readonly ScriptAction[]
  /** Returns what the output schema of the strict job refuses. */
  readonly badOutput?: boolean
}

/** By step: its value, what was caught, or that a `once` step's outcome was lost. */
export type ScriptOutput = readonly (readonly [stepName: string, result: number | string])[]

/** A body that a scripted job began. */
export interface BodyStart {
  readonly runId: string
  readonly runAttempt: number
  readonly step: ScriptStep
  readonly tools: Pick<StepTools, 'attempt' | 'checkpoint'>
}

/** What scripted jobs need, and whom they tell. */
export interface ScriptedJobsOptions {
  /** Slow bodies take time on this clock. */
  readonly clock: Clock
  readonly onBodyStart?: (start: BodyStart) => void
}

const LOST_OUTCOME = 'outcome lost'
export const REFUSED_OUTPUT = 'refused on purpose'
const SCRIPT_TIMEOUT_MS = 3000

/**
 * Jobs that do what their payload says: `scripted`, `timed` with a time-out of 3 s, and `strict` with a schema for its
 * output. The same script gives the same output however often its workers die; `outcomeOf` says which.
 */
export function createScriptedJobs(options: ScriptedJobsOptions) {
  const execute = (ctx: JobContext, script: Script) => play({ ...options, ctx }, script)
  return {
    scripted: defineJob({ name: 'scripted', input: anyScript }, execute),
    timed: defineJob({ name: 'timed', input: anyScript, timeout: SCRIPT_TIMEOUT_MS }, execute),
    strict: defineJob({ name: 'strict', input: anyScript, output: goodOutput }, execute),
  }
}

interface Player extends ScriptedJobsOptions {
  readonly ctx: JobContext
}

async function play(player: Player, { actions, badOutput }: Script): Promise<ScriptOutput> {
  const { ctx } = player
  const output: (readonly [string, number | string])[] = []
  for (const action of actions) {
    if (action.kind === 'step') output.push(await playStep(player, action.step))
    if (action.kind === 'parallel')
      output.push(...(await Promise.all(action.steps.map((step) => playStep(player, step)))))
    if (action.kind === 'unawaited') playStep(player, action.step).catch(() => {})
    if (action.kind === 'progress') ctx.progress(action.current, action.total)
    if (action.kind === 'log') ctx.log.info(action.message)
    if (action.kind === 'throw' && ctx.attempt <= action.failsUntil) throw new Error(action.message)
  }
  return badOutput === true ? [['bad', REFUSED_OUTPUT]] : output
}

async function playStep(player: Player, step: ScriptStep): Promise<readonly [string, number | string]> {
  const body = (tools: StepTools) => playBody(player, step, tools)
  try {
    const { name, once } = step
    return [name, await player.ctx.run(name, { once }, body)]
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown }
    if (step.once === true && code === 'INTERRUPTED') return [step.name, LOST_OUTCOME]
    if (step.caught === true) return [step.name, `caught ${String(message)}`]
    throw error
  }
}

async function playBody({ clock, ctx, onBodyStart }: Player, step: ScriptStep, tools: StepTools): Promise<number> {
  const { saves = 0, ms = 0, logs = 0, failsUntil = 0, ignoresSignal } = step
  onBodyStart?.({ runId: ctx.runId, runAttempt: ctx.attempt, step, tools })
  const signal = ignoresSignal === true ? null : tools.signal
  for (let saved = typeof tools.checkpoint === 'number' ? tools.checkpoint : 0; saved < saves; saved++) {
    await pause(clock, ms / (saves + 1), signal)
    await tools.save(saved + 1)
  }
  for (let line = 0; line < logs; line++) tools.log.info(`line ${line} of ${step.name}`)
  if (ms > 0) await pause(clock, saves === 0 ? ms : ms / (saves + 1), signal)
  if (ctx.attempt <= failsUntil) throw new Error(failureOf(step))
  return step.value
}

function pause(clock: Clock, ms: number, signal: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      callOff()
      reject(signal?.reason)
    }
    const callOff = clock.schedule(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted === true) abort()
  })
}

function failureOf(step: ScriptStep): string {
  return `step ${step.name} fails`
}

/** What a script comes to in the given attempt, had nothing ever gone wrong around it. */
export interface ScriptOutcome {
  /** `null`: it fails. */
  readonly output: ScriptOutput | null
  /** Any of these is the error it fails with. */
  readonly errors: readonly string[]
}

/** What a script comes to when nothing goes wrong. */
export function outcomeOf({ actions, badOutput }: Script, attempt: number): ScriptOutcome {
  const output: (readonly [string, number | string])[] = []
  for (const action of actions) {
    const steps = action.kind === 'parallel' ? action.steps : 'step' in action ? [action.step] : []
    const failing = steps.filter((step) => attempt <= (step.failsUntil ?? 0) && step.caught !== true)
    if (action.kind === 'throw' && attempt <= action.failsUntil) return { output: null, errors: [action.message] }
    if (action.kind === 'unawaited') continue
    if (failing.length > 0) return { output: null, errors: failing.map(failureOf) }
    for (const step of steps)
      output.push([step.name, attempt <= (step.failsUntil ?? 0) ? `caught ${failureOf(step)}` : step.value])
  }
  return { output: badOutput === true ? [['bad', REFUSED_OUTPUT]] : output, errors: [] }
}

/** The steps that a script begins unless it throws before. */
export function stepNamesOf({ actions }: Script): readonly string[] {
  return actions.flatMap((action) => {
    if (action.kind === 'parallel') return action.steps.map((step) => step.name)
    return 'step' in action ? [action.step.name] : []
  })
}

/** Whether an output is the script's; the outcome of a `once` step may have been lost. */
export function isOutputOf(script: Script, attempt: number, output: unknown): boolean {
  const expected = outcomeOf(script, attempt).output
  if (expected === null || !Array.isArray(output) || output.length !== expected.length) return false
  const once = new Set(
    script.actions.flatMap((action) => ('step' in action && action.step.once ? [action.step.name] : [])),
  )
  return expected.every(([name, result], index) => {
    const found: unknown = output[index]
    if (!Array.isArray(found) || found[0] !== name) return false
    return found[1] === result || (once.has(name) && found[1] === LOST_OUTCOME)
  })
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
