import type { MessageContent, Settings } from '../contract'
import type { AnyTool } from '../tools/tool'

/** What a model is asked. */
export interface Question {
  readonly system: string
  /** The conversation so far; each call of a tool is followed by its result. */
  readonly messages: readonly MessageContent[]
  readonly tools: readonly AnyTool[]
  readonly reasoning: Settings['reasoning']
  readonly signal: AbortSignal
  /** Tells what the model has said so far, piece by piece. */
  tell(piece: string | { readonly reasoning: string }): Promise<void>
}

/** What a model has said in one turn, whole. */
export interface Answer {
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly { readonly tool: string; readonly arguments: unknown }[]
}

export interface Model {
  answer(question: Question): Promise<Answer>
}
