import { branchesOf, failureOf, type Script, type ScriptBranch, waitNameOf } from './scripts'

/** `null` stands for what a script does not decide: a payload, or the output of a child. */
export type ScriptResult = number | string | ScriptOutput | null

/** By step: its value, what was caught, or that a `once` step's outcome was lost. */
export type ScriptOutput = readonly (readonly [stepName: string, result: ScriptResult])[]

/** What a wait came to. */
export type Fate = { readonly result: unknown } | { readonly error: string }

/** What the named wait came to, as far as somebody knows. */
export type FateOf = (stepName: string) => Fate | null

export const LOST_OUTCOME = 'outcome lost'
export const REFUSED_OUTPUT = 'refused on purpose'
export const SLEPT = 'slept'

/** What a script comes to in the given attempt, had nothing ever gone wrong around it. */
export interface ScriptOutcome {
  /** `null`: it fails. */
  readonly output: ScriptOutput | null
  /** Any of these is the error it fails with. */
  readonly errors: readonly string[]
}

/** What a script comes to when nothing goes wrong; `fateOf` tells of its waits what only the story decides. */
export function outcomeOf({ actions, badOutput }: Script, attempt: number, fateOf: FateOf = () => null): ScriptOutcome {
  const output: (readonly [string, ScriptResult])[] = []
  for (const action of actions) {
    if (action.kind === 'throw' && attempt <= action.failsUntil) return { output: null, errors: [action.message] }
    if (action.kind === 'unawaited') continue
    const ends = branchesOf(action).map((branch) => endOf(branch, attempt, fateOf))
    const errors = ends.flatMap((end) => ('error' in end ? [end.error] : []))
    if (errors.length > 0) return { output: null, errors }
    for (const end of ends) if ('result' in end) output.push([end.name, end.result])
  }
  return { output: badOutput === true ? [['bad', REFUSED_OUTPUT]] : output, errors: [] }
}

type End = { readonly name: string; readonly result: ScriptResult } | { readonly name: string; readonly error: string }

function endOf(branch: ScriptBranch, attempt: number, fateOf: FateOf): End {
  switch (branch.kind) {
    case 'step':
    case 'stream':
    case 'transaction': {
      const { name, failsUntil = 0, caught, value } = branch.step
      if (attempt > failsUntil) return { name, result: value }
      return caughtOr(name, failureOf(branch.step), caught)
    }
    case 'sleep':
      return { name: branch.name, result: SLEPT }
    default: {
      const { name, caught } = branch
      const fate = fateOf(branch.kind === 'child' ? waitNameOf(branch) : name)
      if (fate === null) return { name, result: null }
      return 'error' in fate ? caughtOr(name, fate.error, caught) : { name, result: fate.result as ScriptResult }
    }
  }
}

function caughtOr(name: string, error: string, caught: boolean | undefined): End {
  return caught === true ? { name, result: caughtText(error) } : { name, error }
}

/** What a script makes of an error that it catches. */
export function caughtText(message: unknown): string {
  return `caught ${String(message)}`
}

/** Whose output is looked at. */
export interface OutputOf {
  readonly script: Script
  readonly attempt: number
  readonly fateOf?: FateOf
}

/** Whether an output is the script's; the outcome of a `once` step may have been lost. */
export function isOutputOf({ script, attempt, fateOf }: OutputOf, output: unknown): boolean {
  const expected = outcomeOf(script, attempt, fateOf).output
  if (expected === null || !Array.isArray(output) || output.length !== expected.length) return false
  const steps = script.actions.flatMap(branchesOf)
  const once = new Set(
    steps.flatMap((branch) => (branch.kind === 'step' && branch.step.once ? [branch.step.name] : [])),
  )
  return expected.every(([name, result], index) => {
    const found: unknown = output[index]
    if (!Array.isArray(found) || found[0] !== name) return false
    if (result === null || (once.has(name) && found[1] === LOST_OUTCOME)) return true
    return JSON.stringify(found[1]) === JSON.stringify(result)
  })
}
