import { type CallSite, takeCallSite } from './call-site'
import { DuplicateStepError, InvalidOptionError, NestedStepError, refuseBadText } from '../base'
import type { Pass, Settle } from './open-calls'
import type { StepKind } from '../port'
import type { StepScope } from './scope'

export interface CtxCall {
  readonly scope: StepScope
  readonly pass: Pass
  readonly name: string
  /** The function of `ctx` that the job called, to find the place of the call. */
  readonly calledAt: (...args: never[]) => unknown
}

/**
 * What is wrong with a call rejects it, as everything else that fails does: somebody who makes several at once would miss
 * the others if it threw.
 */
export function orRefused<Call extends CtxCall, T>(call: Call, begin: (call: Call) => Promise<T>): Promise<T> {
  try {
    return begin(call)
  } catch (error) {
    return call.scope.calls.refuse(error, call)
  }
}

/** Every call of `ctx` that has a name: takes the name or throws, and is open until it has settled. */
export function openCall<T>(call: CtxCall, kind: StepKind, begin: (index: number) => Promise<T>): Promise<T> {
  return openCallThen<T>(call, kind, (index) => {
    const work = begin(index)
    return (settle) => follow(work, settle)
  })
}

export function follow<T>(work: Promise<T>, settle: Settle<T>): void {
  void work.then(
    (value) => settle.succeed(value),
    (error: unknown) => settle.fail(error),
  )
}

/** What a call comes to that is recorded already. */
export class Recorded<T> {
  readonly value: T

  constructor(value: T) {
    this.value = value
  }
}

/** For a call that needs no promise of its own between its beginning and its end, or is skipped. */
export function openCallThen<T>(
  { scope, pass, name, calledAt }: CtxCall,
  kind: StepKind,
  beginning: (index: number) => Recorded<T> | ((settle: Settle<T>) => void),
): Promise<T> {
  const { calls } = scope
  if (scope.interruption.reason() !== null) return calls.openTooLate({ name, pass })
  const index = takeName({ scope, pass, name, calledAt })
  const open = calls.share(name, pass)
  const known = open ?? knownStep(scope, name)
  if (known !== undefined && !mayFollow(known.kind, kind)) {
    scope.park(describeMix(name, known.kind, kind))
    return new Promise<never>(() => {})
  }
  if (open !== undefined) {
    scope.suspension.check()
    return open.call as Promise<T>
  }
  const begin = beginning(index)
  return begin instanceof Recorded ? Promise.resolve(begin.value) : calls.open({ name, index, kind, pass, begin })
}

const SKIPPED_CALL: CallSite = { describe: () => 'by a call that found it recorded' }

function takeName({ scope, pass, name, calledAt }: CtxCall): number {
  if (typeof name !== 'string' || name === '') throw new InvalidOptionError('A step needs a name that is not empty.')
  // A name that a database changes would not be found again.
  refuseBadText('The name of a step', name)
  const outer = scope.engine.bodyScope.current()
  if (outer?.scope === scope && outer.stepName !== null) throw new NestedStepError(name, outer.stepName)
  const first = pass.names.get(name)
  if (first !== undefined) throw new DuplicateStepError(name, first.describe(), takeCallSite(calledAt).describe())
  // Of thousands that are skipped each would cost as much as the rest of its way.
  pass.names.set(name, scope.recorded.get(name)?.status === 'completed' ? SKIPPED_CALL : takeCallSite(calledAt))
  return pass.names.size - 1
}

/** Whose outcome the call would take for its own. */
function knownStep({ recorded, failed, run }: StepScope, name: string): { readonly kind: StepKind } | undefined {
  const before = recorded.get(name)
  if (before !== undefined) return before
  const failure = failed.get(name)
  return failure?.attempt === run.attempt ? failure : undefined
}

const CALLED = {
  run: 'ctx.run',
  stream: 'ctx.stream',
  transaction: 'ctx.transaction',
  sleep: 'ctx.sleep',
  signal: 'ctx.waitFor',
  child: 'ctx.wait',
  trigger: 'ctx.trigger',
  triggerAll: 'ctx.triggerAll',
  waitAll: 'ctx.waitAll',
} as const satisfies Record<StepKind, string>

const BODIES: ReadonlySet<StepKind> = new Set(['run', 'stream', 'transaction'])

/** What one body came to is as good as another's. A signal is no result of a body, and a run no payload. */
function mayFollow(before: StepKind, kind: StepKind): boolean {
  return before === kind || (BODIES.has(before) && BODIES.has(kind))
}

function describeMix(name: string, before: StepKind, kind: StepKind): string {
  return (
    `Step "${name}" was ${CALLED[before]} when it was recorded, and is ${CALLED[kind]} now. ` +
    'Give the new call a name of its own.'
  )
}
