import { declareJob } from '@coji/durably'
import { z } from 'zod'

/** What a run of the agent is given. Its message is kept in the conversation, too, at this place of it. */
export const agentInputSchema = z.object({
  session_id: z.string(),
  user_id: z.string(),
  message: z.string(),
  place: z.string(),
})

export const agentOutputSchema = z.object({ turns: z.number() })

export type AgentInput = z.output<typeof agentInputSchema>

export const AGENT_JOB = 'agent'

/** What processes know of the agent that do not execute it. */
export const agentDeclaration = declareJob({ name: AGENT_JOB, input: agentInputSchema, output: agentOutputSchema })

/** How a person has decided about a call; who says stop cancels the run instead. */
export const decisionSchema = z.discriminatedUnion('decision', [
  z.strictObject({ decision: z.literal('approve'), arguments: z.json().optional() }),
  z.strictObject({ decision: z.literal('refuse'), reason: z.string().optional() }),
])

/** Which session a run is of. */
export const SESSION_LABEL = 'session'

/** Runs of one session never overlap: they share this, and keep it while they wait. */
export function sessionKey(sessionId: string): string {
  return `session:${sessionId}`
}
