import type { z } from 'zod'
import type { WorkerConfig } from '../config'

/** What the agent may call. What its model gives as arguments was checked by `input` before. */
export interface Tool<TInput = never, TResult = unknown> {
  /** As the model calls it: letters, digits, `_`. */
  readonly name: string
  /** Told to the model. */
  readonly description: string
  readonly input: z.ZodType<TInput>
  /**
   * Whether a second call does more than the first. It is begun at most once then; when its outcome was lost with its
   * worker, a person is asked.
   */
  readonly sideEffects: boolean
  /** Whether a person has to agree before each call, who may edit its arguments. */
  readonly needsApproval: boolean | ((input: TInput) => boolean)
  /** Gives JSON for the model, 200 kB at most. What it throws is told to the model as the error of the call. */
  execute(input: TInput, context: ToolContext): Promise<TResult>
}

/** A tool of any input, as lists have it. */
export type AnyTool = Omit<Tool, 'input' | 'needsApproval' | 'execute'> & {
  readonly input: z.ZodType
  needsApproval: boolean | ((input: never) => boolean)
  execute(input: never, context: ToolContext): Promise<unknown>
}

/** What a call gets beside its arguments. */
export interface ToolContext {
  readonly runId: string
  readonly sessionId: string
  readonly userId: string
  /** Aborts when the run is cancelled, lost or has to stop here, and when the call took too long. */
  readonly signal: AbortSignal
  /** The same for every start of this call, and of no other: for services that know idempotency keys. */
  readonly idempotencyKey: string
  readonly files: SessionFiles
}

/**
 * The files of the session, as they were when the call began. What is written is seen by this call at once, and by everybody
 * else when the result of the call is kept, with it or not at all. Paths are relative (`notes/today.md`), without `..`.
 */
export interface SessionFiles {
  list(): Promise<readonly { readonly path: string; readonly size: number }[]>
  /** `null` when there is none. */
  read(path: string): Promise<Uint8Array | null>
  write(path: string, bytes: Uint8Array): Promise<void>
  remove(path: string): Promise<void>
}

/** Checks what a tool is where it is written, and lets it stand in lists. */
export function defineTool<TInput, TResult>(tool: Tool<TInput, TResult>): AnyTool {
  return tool as unknown as AnyTool
}

/**
 * More tools that a deployment may turn on: `sandbox/index.ts` exports `createSandboxTools: ToolSource`, which rejects, with what
 * is missing, where the machine cannot isolate them. Asked once, when a worker starts that has `SANDBOX=bwrap`.
 */
export type ToolSource = (config: Pick<WorkerConfig, 'sandboxUser'>) => Promise<readonly AnyTool[]>
