import type { ChildOptions, RetryPolicy } from '../../job'

/** One step of a script. Without anything else it succeeds at once with its value. */
export interface ScriptStep {
  readonly name: string
  readonly value: number
  /** How long the body takes. */
  readonly ms?: number
  /** The body fails while the run's attempt is at or below this. */
  readonly failsUntil?: number
  /** The body fails so many times in all. Fewer than its policy allows, or what comes of it would be a matter of time. */
  readonly fails?: number
  /** How it fails; without it with an error like any other. One that hangs needs a `timeout`, and no `ms`. */
  readonly failure?: 'permanent' | 'after' | 'hangs'
  readonly retry?: ScriptPolicy
  readonly timeout?: number
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

/** `ctx.stream`: a step that says its chunks on the way. It has nothing to save. */
export interface ScriptStream extends Omit<ScriptStep, 'once' | 'saves' | 'ms'> {
  readonly once?: never
  readonly chunks: readonly ScriptChunk[]
  /** A try that fails has said so many of them before. */
  readonly saysBeforeFailing?: number
  /** Emits without waiting for anything, also for a refusal. */
  readonly hasty?: boolean
}

/** `ctx.transaction`, whose body writes one row of the application. */
export interface ScriptTransaction extends Omit<ScriptStep, 'once' | 'saves' | 'timeout'> {
  readonly once?: never
  readonly failure?: 'permanent' | 'after'
}

/** What is said, after a pause. Text that follows text may be stored as one. */
export interface ScriptChunk {
  readonly kind: 'text' | 'object'
  readonly ms?: number
}

/** A policy that a payload can hold. */
export type ScriptPolicy = Omit<RetryPolicy, 'delay'> & {
  readonly delay: Exclude<RetryPolicy['delay'], undefined | ((...args: never[]) => unknown)>
}

/** `ctx.sleep`, for so long or until an instant. */
export interface ScriptSleep {
  readonly kind: 'sleep'
  readonly name: string
  readonly ms: number | { readonly until: string }
}

/** `ctx.waitFor` the signal, whose payload is the result. */
export interface ScriptWaitFor {
  readonly kind: 'waitFor'
  readonly name: string
  readonly signal: string
  readonly timeout?: number
  readonly caught?: boolean
}

/** `ctx.trigger` another scripted job, then `ctx.wait` under the name that `waitNameOf` gives. */
export interface ScriptChild {
  readonly kind: 'child'
  readonly name: string
  readonly job: ScriptedJobName
  readonly script: Script
  readonly options?: Omit<ChildOptions, 'runAt'> & { readonly runAt?: string }
  readonly caught?: boolean
}

/** What goes by itself or beside others. */
export type ScriptBranch =
  | { readonly kind: 'step'; readonly step: ScriptStep }
  | { readonly kind: 'stream'; readonly step: ScriptStream }
  | { readonly kind: 'transaction'; readonly step: ScriptTransaction }
  | ScriptSleep
  | ScriptWaitFor
  | ScriptChild

/** What a script does, one after another. */
export type ScriptAction =
  | ScriptBranch
  | { readonly kind: 'parallel'; readonly branches: readonly ScriptBranch[] }
  /** Begun, never awaited by the job. A step must not fail: whether the run still hears of it is a matter of time. */
  | { readonly kind: 'unawaited'; readonly branch: ScriptBranch }
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

/** The names of the scripted jobs. */
export const SCRIPTED_JOBS = ['scripted', 'timed', 'strict', 'patient', 'growing'] as const

/** The name of a scripted job. */
export type ScriptedJobName = (typeof SCRIPTED_JOBS)[number]

/** How each job is tried again. */
export const JOB_POLICIES: Readonly<Partial<Record<string, ScriptPolicy>>> = {
  patient: { maxAttempts: 3, delay: 800 },
  growing: { maxAttempts: 4, delay: { from: 400, factor: 2, upTo: 1200 } },
}

/** What an error that says so asks for. */
export const RETRY_AFTER_MS = 900

/** A call of `ctx` that a script makes. */
export type ScriptCall =
  | { readonly kind: 'run'; readonly name: string; readonly step: ScriptStep }
  | { readonly kind: 'stream'; readonly name: string; readonly step: ScriptStream }
  | { readonly kind: 'transaction'; readonly name: string; readonly step: ScriptTransaction }
  | { readonly kind: 'sleep'; readonly name: string; readonly branch: ScriptSleep }
  | { readonly kind: 'signal'; readonly name: string; readonly branch: ScriptWaitFor }
  | { readonly kind: 'trigger' | 'child'; readonly name: string; readonly branch: ScriptChild }

/** Under which name the job waits for the child. */
export function waitNameOf({ name }: ScriptChild): string {
  return `${name} ended`
}

/** The branches of an action, and whether the job awaits them. */
export function branchesOf(action: ScriptAction): readonly ScriptBranch[] {
  switch (action.kind) {
    case 'parallel':
      return action.branches
    case 'unawaited':
      return [action.branch]
    case 'progress':
    case 'log':
    case 'throw':
      return []
    default:
      return [action]
  }
}

/** All that a script may call, by name. */
export function callsOf({ actions }: Script): readonly ScriptCall[] {
  return actions.flatMap(branchesOf).flatMap(callsOfBranch)
}

export function callsOfBranch(branch: ScriptBranch): readonly ScriptCall[] {
  switch (branch.kind) {
    case 'step':
      return [{ kind: 'run', name: branch.step.name, step: branch.step }]
    case 'stream':
      return [{ kind: 'stream', name: branch.step.name, step: branch.step }]
    case 'transaction':
      return [{ kind: 'transaction', name: branch.step.name, step: branch.step }]
    case 'sleep':
      return [{ kind: 'sleep', name: branch.name, branch }]
    case 'waitFor':
      return [{ kind: 'signal', name: branch.name, branch }]
    case 'child':
      return [
        { kind: 'trigger', name: branch.name, branch },
        { kind: 'child', name: waitNameOf(branch), branch },
      ]
  }
}

/** Whether the body fails, in an attempt of the run and after so many failures of the step in all. */
export function bodyFails({ failsUntil = 0, fails = 0 }: ScriptStep, runAttempt: number, failures: number): boolean {
  return runAttempt <= failsUntil || failures < fails
}

/** What it fails with. */
export function failureOf({ name, failure, timeout }: ScriptStep): string {
  return failure === 'hangs' ? `Step "${name}" took longer than ${timeout} ms.` : `step ${name} fails`
}

/** What a try says in all: each chunk tells which try it is of, and which chunk. */
export function sayingsOf({ chunks, saysBeforeFailing = 0 }: ScriptStream, tryName: string, isFailing: boolean) {
  return chunks.slice(0, isFailing ? saysBeforeFailing : chunks.length).map(({ kind, ms = 0 }, place) => ({
    ms,
    chunk: kind === 'text' ? `${tryName}.${place} ` : { of: tryName, place },
  }))
}

/** Chunks with all the text joined that follows other text. */
export function joined(chunks: readonly unknown[]): readonly unknown[] {
  const result: unknown[] = []
  for (const chunk of chunks) {
    const last = result.at(-1)
    if (typeof chunk === 'string' && typeof last === 'string') result[result.length - 1] = last + chunk
    else result.push(chunk)
  }
  return result
}
