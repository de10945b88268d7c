import type { Message, Piece, RunView, ToolCall } from '../../src/contract'

type State = Extract<Piece, { type: 'state' }>['state']

/** A call of a tool, as far as it has come. */
export interface CallProgress extends ToolCall {
  readonly state: 'planned' | 'asking' | 'running' | 'done' | 'failed' | 'refused' | 'interrupted'
  /** What somebody has to decide, when `asking`. */
  readonly ask: { readonly name: string; readonly why: 'approval' | 'interrupted' } | null
  /** Somebody has edited what it is called with. */
  readonly isEdited: boolean
  readonly result: unknown
}

/** One answer of the model, as far as it has come. */
export interface TurnProgress {
  readonly turn: number
  readonly text: string
  readonly reasoning: string
  readonly isOver: boolean
  /** It was begun before, and what had come of it was lost. */
  readonly isRepeated: boolean
  readonly error: string | null
  readonly calls: readonly CallProgress[]
}

/** A run, as far as it has come: what its events say, one after the other. */
export interface RunProgress {
  readonly state: State
  readonly error: string | null
  /** How often another worker went on with it. */
  readonly takeovers: number
  readonly turns: readonly TurnProgress[]
}

export const NOT_BEGUN: RunProgress = { state: 'queued', error: null, takeovers: 0, turns: [] }

export function isOver({ state }: Pick<RunProgress, 'state'>): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled'
}

const newTurn = (turn: number): TurnProgress => ({
  ...{ turn, text: '', reasoning: '', isOver: false, isRepeated: false, error: null, calls: [] },
})

export function applyPiece(run: RunProgress, piece: Piece): RunProgress {
  switch (piece.type) {
    case 'state':
      return { ...run, state: piece.state, error: piece.error }
    case 'taken-over':
      return { ...run, takeovers: run.takeovers + 1 }
    case 'turn':
    case 'text':
    case 'reasoning':
    case 'turn-end':
    case 'turn-failed':
      return { ...run, turns: withTurn(run.turns, piece) }
    default:
      return {
        ...run,
        turns: run.turns.map((turn) => ({ ...turn, calls: turn.calls.map((call) => withCall(call, piece)) })),
      }
  }
}

type OfTurn = Extract<Piece, { type: 'turn' | 'text' | 'reasoning' | 'turn-end' | 'turn-failed' }>

function withTurn(turns: readonly TurnProgress[], piece: OfTurn): readonly TurnProgress[] {
  const known = turns.find(({ turn }) => turn === piece.turn)
  const now = applyToTurn(known ?? newTurn(piece.turn), piece, known !== undefined)
  return known === undefined ? [...turns, now] : turns.map((turn) => (turn === known ? now : turn))
}

function applyToTurn(turn: TurnProgress, piece: OfTurn, isKnown: boolean): TurnProgress {
  switch (piece.type) {
    case 'turn':
      return { ...newTurn(piece.turn), isRepeated: piece.isRepeated || isKnown }
    case 'text':
      return { ...turn, text: turn.text + piece.text }
    case 'reasoning':
      return { ...turn, reasoning: turn.reasoning + piece.text }
    case 'turn-failed':
      return { ...turn, error: piece.error }
    case 'turn-end':
      return { ...turn, ...endOfTurn(piece) }
  }
}

function endOfTurn({
  text,
  reasoning,
  toolCalls,
}: {
  text: string
  reasoning: string
  toolCalls: readonly ToolCall[]
}) {
  return { text, reasoning, isOver: true, error: null, calls: toolCalls.map(planned) }
}

function planned(call: ToolCall): CallProgress {
  return { ...call, state: 'planned', ask: null, isEdited: false, result: null }
}

type OfCall = Extract<Piece, { call: string }>

function withCall(call: CallProgress, piece: OfCall): CallProgress {
  if (call.call !== piece.call) return call
  switch (piece.type) {
    case 'asked':
      return { ...call, state: 'asking', ask: { name: piece.name, why: piece.why } }
    case 'decided': {
      const edited = 'arguments' in piece ? { arguments: piece.arguments, isEdited: true } : {}
      if (piece.decision === 'approve') return { ...call, ...edited, state: 'planned', ask: null }
      return { ...call, state: 'refused', ask: null, result: piece.reason }
    }
    case 'tool-start':
      return { ...call, state: 'running' }
    case 'tool-interrupted':
      return { ...call, state: 'interrupted' }
    case 'tool-result':
      return { ...call, state: piece.isError ? 'failed' : 'done', result: piece.result }
  }
}

/** The same from the conversation as it is kept, which has no more than what came of it. */
export function progressOf(run: RunView, messages: readonly Message[]): RunProgress {
  const turns = messages.flatMap(({ content }) =>
    content.role === 'assistant' ? [{ ...newTurn(content.turn), ...endOfTurn(content) }] : [],
  )
  const state = run.isWaiting ? 'waiting' : run.status
  return withKept({ state, error: run.error, takeovers: 0, turns }, messages)
}

/** A call that was never begun, since it was refused or made no sense, has its result in the conversation only. */
export function withKept(run: RunProgress, messages: readonly Message[]): RunProgress {
  const results = new Map(messages.flatMap(({ content }) => (content.role === 'tool' ? [[content.call, content]] : [])))
  const complete = (call: CallProgress): CallProgress => {
    const kept = results.get(call.call)
    if (kept === undefined || call.state === 'done' || call.state === 'failed') return call
    const isEdited = call.isEdited || JSON.stringify(kept.arguments) !== JSON.stringify(call.arguments)
    const state = call.state === 'refused' ? 'refused' : kept.isError ? 'failed' : 'done'
    return { ...call, arguments: kept.arguments, isEdited, ask: null, state, result: call.result ?? kept.result }
  }
  return { ...run, turns: run.turns.map((turn) => ({ ...turn, calls: turn.calls.map(complete) })) }
}
