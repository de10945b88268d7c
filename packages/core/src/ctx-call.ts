import { takeCallSite } from './call-site'
import { DuplicateStepError, InvalidOptionError, NestedStepError, refuseBadText } from './errors'
import type { StepScope } from './step-scope'

export interface CtxCall {
  readonly scope: StepScope
  readonly name: string
  /** The function of `ctx` that the job called, to find the place of the call. */
  readonly calledAt: (...args: never[]) => unknown
  /** A wait that is still open when the job returns is given up; a step is not. */
  readonly isWait?: boolean
}

/** Every call of `ctx` that has a name: takes the name, and is open until it has settled. */
export function openCall<T>(
  { scope, name, calledAt, isWait = false }: CtxCall,
  perform: (index: number) => Promise<T>,
): Promise<T> {
  if (scope.interruption.reason() !== null) return handled(scope.interruption.refuse())
  let index: number
  try {
    index = takeName(scope, name, calledAt)
  } catch (error) {
    return handled(Promise.reject(error))
  }
  const call = handled(untilInterrupted(scope, perform(index)))
  scope.openCalls.set(index, { stepName: name, call, isWait })
  const close = () => {
    scope.openCalls.delete(index)
    scope.suspension.check()
  }
  call.then(close, close)
  return call
}

/** What a call comes to is recorded even when its execution was interrupted meanwhile; the job does not see it then. */
async function untilInterrupted<T>(scope: StepScope, work: Promise<T>): Promise<T> {
  const [settled] = await Promise.allSettled([work])
  if (scope.interruption.reason() !== null) return scope.interruption.refuse()
  if (settled.status === 'rejected') throw settled.reason
  return settled.value
}

/** What nobody awaits must not end the process when it fails; somebody else is told. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

function takeName(scope: StepScope, name: string, calledAt: (...args: never[]) => unknown): number {
  if (typeof name !== 'string' || name === '') throw new InvalidOptionError('A step needs a name that is not empty.')
  // A name that a database changes would not be found again.
  refuseBadText('The name of a step', name)
  const outer = scope.bodyScope.current()
  if (outer?.scope === scope) throw new NestedStepError(name, outer.stepName)
  const { names } = scope.pass
  const site = takeCallSite(calledAt)
  const first = names.get(name)
  if (first !== undefined) throw new DuplicateStepError(name, first.describe(), site.describe())
  names.set(name, site)
  return names.size - 1
}
