import { setTimeout as pass } from 'node:timers/promises'
import { defineJob } from '../../../src/index'
import { accepting } from './accepting'

export const FIVE_STEPS = ['one', 'two', 'three', 'four', 'five'] as const

export interface FiveStepsParams {
  /** How long a body takes. */
  readonly stepMs: number
  readonly onBody: (runId: string, stepName: string) => void
}

/** Five steps, each made from the result of the one before. */
export function fiveSteps({ stepMs, onBody }: FiveStepsParams) {
  return defineJob({ name: 'five-steps', input: accepting<{ readonly n: number }>() }, async (ctx, { n }) => {
    let value = String(n)
    for (const name of FIVE_STEPS) {
      value = await ctx.run(name, async () => {
        onBody(ctx.runId, name)
        await pass(stepMs)
        return `${value} ${name}`
      })
    }
    return value
  })
}

/** What a run of five steps comes to. */
export function outcomeOf(n: number): string {
  return [n, ...FIVE_STEPS].join(' ')
}
