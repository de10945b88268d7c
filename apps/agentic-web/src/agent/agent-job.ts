import { defineJob, type JobContext } from '@coji/durably'
import type { Kysely, Transaction } from 'kysely'
import type { Tables } from '../database/tables'
import { stepNames } from '../step-names'
import type { AnyTool } from '../tools/tool'
import { keepMessage } from './conversation'
import { AGENT_JOB, type AgentInput, agentInputSchema, agentOutputSchema } from './declaration'
import type { Model } from './model'
import { carryOut } from './tool-call'
import { takeTurn } from './turn'

/** What the agent needs of its process. */
export interface AgentParts {
  readonly db: Kysely<Tables>
  readonly tools: readonly AnyTool[]
  /** The model that a user has chosen, with the key of that user. Asked in each turn: nothing of it is stored with a run. */
  modelOf(userId: string): Promise<{ readonly model: Model; readonly reasoning: 'none' | 'low' | 'medium' | 'high' }>
}

/** One run of the agent, as its parts see it. */
export interface AgentRun extends AgentParts {
  readonly ctx: JobContext
  readonly input: AgentInput
}

const MOST_TURNS = 24

/** Answers one message: turn by turn, until a turn calls no tool. */
export function defineAgent(parts: AgentParts) {
  return defineJob(
    { name: AGENT_JOB, input: agentInputSchema, output: agentOutputSchema, retry: { maxAttempts: 1 } },
    async (ctx, input) => {
      const run: AgentRun = { ...parts, ctx, input }
      let position = 1
      for (let turn = 1; turn <= MOST_TURNS; turn++) {
        const said = await takeTurn(run, turn)
        await keep(run, { what: `turn ${turn}`, position, content: { role: 'assistant', turn, ...said } })
        position += 1
        for (const call of said.toolCalls) {
          await carryOut(run, { call, position })
          position += 1
        }
        if (said.toolCalls.length === 0) return { turns: turn }
      }
      throw new Error(`The model called tools in ${MOST_TURNS} turns and came to no end.`)
    },
  )
}

type Kept = Pick<Parameters<typeof keepMessage>[1], 'position' | 'content'> & {
  readonly what: string
  readonly along?: (trx: Transaction<Tables>) => Promise<void>
}

/** Keeps a piece of the conversation, and what goes along with it, in one transaction. */
export async function keep({ ctx, input }: AgentRun, { what, position, content, along }: Kept): Promise<void> {
  await ctx.transaction(stepNames.keep(what), async (trx: Transaction<Tables>) => {
    await keepMessage(trx, { of: input, runId: ctx.runId, position, content })
    await along?.(trx)
  })
}
