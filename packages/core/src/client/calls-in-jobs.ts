import type { Engine, OpenBody } from '../engine'
import { handled, InvalidOptionError } from '../base'

/** For what waits for the worker: rejects inside of a job that is going on, for which it would wait. */
export function refuseInside(engine: Engine, call: string): Promise<never> | null {
  const inside = ownCaller(engine)
  if (inside === null) return null
  const { scope, stepName } = inside
  const place = stepName === null ? `job "${scope.run.jobName}"` : `step "${stepName}"`
  const error = new InvalidOptionError(
    `${call} in ${place} would wait for run ${scope.run.id}, which is waiting for it. Call it outside of jobs; ` +
      'in one, ctx.trigger and ctx.wait are for other runs, and ctx.signal tells that the worker stops.',
  )
  // Told also when nobody awaits the call.
  engine.reportError(error, call)
  return handled(Promise.reject(error))
}

/** For what waits for a run: a run that does holds its slot, and forgets what it waits for when its worker dies. */
export function refuseInJob(engine: Engine, call: string): void {
  const inside = ownCaller(engine)
  if (inside === null) return
  throw new InvalidOptionError(
    `${call} inside of run ${inside.scope.run.id} would hold its slot, which the other run may need. Use ctx.trigger() ` +
      'and ctx.wait(): the run then waits in the database.',
  )
}

/** The execution of this very instance that the current code belongs to, as long as its function runs. */
function ownCaller(engine: Engine): OpenBody | null {
  const inside = engine.bodyScope.current()
  return inside === undefined || inside.scope.engine !== engine || inside.scope.calls.isOver ? null : inside
}
