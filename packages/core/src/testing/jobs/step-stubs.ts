import type { Plugin, StepInfo } from '../../plugin'

/** What runs instead of the body of a step; `original` runs the body after all. */
export type StepStub = (step: StepInfo, original: () => Promise<unknown>) => unknown

/** By the name of the step, in whatever job; or by the name of a job, and then of its step. */
export type StepStubs = Readonly<Record<string, StepStub | Readonly<Record<string, StepStub>>>>

/** Everything around a stubbed step is as in earnest: its options, its row, its events, what its result may be. */
export function stubSteps(stubs: StepStubs): Plugin {
  return {
    name: 'step-stubs',
    async aroundStep(step, next) {
      const stub = stubOf(stubs, step)
      return stub === undefined ? next() : stub(step, next)
    },
  }
}

function stubOf(stubs: StepStubs, { jobName, stepName }: StepInfo): StepStub | undefined {
  const ofJob = own(stubs, jobName)
  const inJob = typeof ofJob === 'object' ? own(ofJob, stepName) : undefined
  const anywhere = own(stubs, stepName)
  return inJob ?? (typeof anywhere === 'function' ? anywhere : undefined)
}

function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
