import type { StoredEvent } from '@coji/durably'
import type { Piece } from './contract'
import { isForSomebody, readStepName } from './step-names'

/** What an event of a run means for the chat: nothing, one thing or several. Knows nothing of the events before. */
export function piecesOf(event: StoredEvent): readonly Piece[] {
  switch (event.type) {
    case 'run:trigger':
      return [state('queued')]
    case 'run:start':
      return [state('running')]
    case 'run:complete':
      return [state('completed')]
    case 'run:fail':
    case 'run:timeout':
      return [state('failed', event.error)]
    case 'run:cancel':
      return event.requested ? [] : [state('cancelled')]
    case 'run:retry':
      return event.byHand ? [state('queued')] : []
    case 'run:suspend':
      return isForSomebody(event.waitingFor) ? [state('waiting')] : []
    case 'run:recover':
    case 'run:release':
      return [{ type: 'taken-over' }]
    default:
      return 'stepName' in event ? piecesOfStep(event) : []
  }
}

function state(now: Extract<Piece, { type: 'state' }>['state'], error: string | null = null): Piece {
  return { type: 'state', state: now, error }
}

type OfStep = Exclude<Extract<StoredEvent, { readonly stepName: unknown }>, { readonly type: 'log:write' }>

function piecesOfStep(event: Extract<StoredEvent, { readonly stepName: unknown }>): readonly Piece[] {
  if (event.type === 'log:write') return []
  const step = readStepName(event.stepName)
  if (step === null) return []
  if (step.kind === 'turn') return piecesOfTurn(event, step.turn)
  return step.kind === 'ask' ? piecesOfAsking(event, step) : piecesOfTool(event, step.call)
}

function piecesOfTurn(event: OfStep, turn: number): readonly Piece[] {
  switch (event.type) {
    case 'step:start':
      return [{ type: 'turn', turn, isRepeated: false }]
    case 'step:restart':
      return [{ type: 'turn', turn, isRepeated: true }]
    case 'step:chunk': {
      const { chunk } = event
      if (typeof chunk === 'string') return [{ type: 'text', turn, text: chunk }]
      const { reasoning } = Object(chunk) as { reasoning?: unknown }
      return typeof reasoning === 'string' ? [{ type: 'reasoning', turn, text: reasoning }] : []
    }
    case 'step:fail':
      return [{ type: 'turn-failed', turn, error: event.error }]
    case 'step:complete':
      return [
        { type: 'turn-end', turn, ...(event.output as Omit<Extract<Piece, { type: 'turn-end' }>, 'type' | 'turn'>) },
      ]
    default:
      return []
  }
}

function piecesOfAsking(
  event: OfStep,
  { call, name, why }: { readonly call: string; readonly name: string; readonly why: 'approval' | 'interrupted' },
): readonly Piece[] {
  if (event.type === 'step:start') return [{ type: 'asked', call, name, why }]
  if (event.type !== 'step:complete') return []
  const {
    decision,
    reason = null,
    ...more
  } = event.output as Pick<Extract<Piece, { type: 'decided' }>, 'decision'> & {
    readonly reason?: string
    readonly arguments?: unknown
  }
  const edited = more.arguments === undefined ? {} : { arguments: more.arguments }
  return [{ type: 'decided', call, name, decision, reason, ...edited }]
}

function piecesOfTool(event: OfStep, call: string): readonly Piece[] {
  if (event.type === 'step:start') return [{ type: 'tool-start', call }]
  if (event.type === 'step:fail') return [{ type: 'tool-interrupted', call }]
  if (event.type !== 'step:complete') return []
  const { result, isError } = event.output as { readonly result: unknown; readonly isError: boolean }
  return [{ type: 'tool-result', call, result, isError }]
}
