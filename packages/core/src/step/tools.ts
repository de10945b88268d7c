import { decodeValue, encodeValue, handled, InvalidOptionError, isRejection, turnOf } from '../base'
import type { StepLog, StepTools } from '../job'
import { commitRow, type CallRow } from './row'
import type { StepScope } from './scope'

/** The row of a body in progress. */
export interface OpenStep extends CallRow {
  /** Until the body has settled. */
  isOpen: boolean
}

/** What a body gets; valid until it has settled. */
export function toolsFor(call: OpenStep, aborter: { readonly signal: AbortSignal }): StepTools {
  const { scope, name } = call
  const saved = call.checkpoint
  let log: StepLog | undefined
  let saveInTurn: StepTools['save'] | undefined
  // Most bodies ask for nothing of it.
  return {
    get signal() {
      return aborter.signal
    },
    attempt: (scope.failures.get(name) ?? 0) + 1,
    checkpoint: decodeValue(saved),
    get idempotencyKey() {
      return `${scope.run.id}/${inHeader(name)}`
    },
    get log() {
      log ??= scope.logFor(name)
      return log
    },
    progress: scope.progress,
    get save() {
      saveInTurn ??= saving(call)
      return saveInTurn
    },
  }
}

function saving(call: OpenStep): StepTools['save'] {
  const inTurn = refusingInTurn(call.scope)
  return (checkpoint) => handled(inTurn(save(call, checkpoint)))
}

/**
 * For calls that a body may go on making in a loop, whatever they are refused for. The first refusal comes at once; the
 * others one in a turn of the event loop, so that they hold up no timers, and none once the run has ended.
 */
export function refusingInTurn({ engine, calls }: StepScope): <T>(work: Promise<T>) => Promise<T> {
  let hasRefused = false
  return async (work) => {
    try {
      return await work
    } catch (error) {
      if (hasRefused) await turnOf(engine.environment.clock)
      if (hasRefused && calls.isOver) await new Promise<never>(() => {})
      hasRefused = true
      throw error
    }
  }
}

/** Two names never become one: what encodes is encoded too. */
function inHeader(name: string): string {
  return name.replace(/[^\x21-\x7e]|%/gu, encodeURIComponent)
}

async function save(call: OpenStep, checkpoint: unknown): Promise<void> {
  const { scope, name } = call
  if (!call.isOpen) throw new InvalidOptionError(`save() of step "${name}" was called after its body had ended.`)
  const before = call.checkpoint
  call.checkpoint = encodeValue(checkpoint, `The checkpoint of step "${name}"`)
  const { row } = await commitRow(call, 'started', { hasProgressed: call.checkpoint !== before }).catch(
    (error: unknown) => {
      // What cannot be stored must not go with the row of the step's failure again.
      if (isRejection(error)) call.checkpoint = before
      throw error
    },
  )
  if (call.isOpen) scope.recorded.set(name, row)
}
