import { InvalidOptionError } from '../../base'
import type { StepInfo } from '../../engine'
import type { Plugin } from '../../instance'
import { UnusedStubError } from './errors'

/** What runs instead of the body of a step; `original` runs the body after all. */
export type StepStub = (step: StepInfo, original: () => Promise<unknown>) => unknown

/** By the name of the step, in whatever job; or by the name of a job, and then of its step. */
export type StepStubs = Readonly<Record<string, StepStub | Readonly<Record<string, StepStub>>>>

/** The stubs of a test, over all its processes. */
export class StubbedSteps {
  readonly #stubs: StepStubs
  /** As `labelOf` has them: one function may be the stub of several steps. */
  readonly #used = new Set<string>()
  readonly #asked = new Set<string>()
  readonly #inProgress = new Set<StepInfo>()

  constructor(stubs: StepStubs, jobNames: readonly string[]) {
    for (const [name, stub] of Object.entries(requireRecord(stubs))) refuseBadStub(name, stub, jobNames)
    this.#stubs = stubs
  }

  /** Everything around a stubbed step is as in earnest: its options, its row, its events, what its result may be. */
  plugin(): Plugin {
    // Bodies of a process that died may never settle.
    this.#inProgress.clear()
    return {
      name: 'step-stubs',
      aroundStep: async (step, next) => {
        const stub = this.#stubOf(step)
        this.#inProgress.add(step)
        try {
          return await (stub === undefined ? next() : stub(step, next))
        } finally {
          this.#inProgress.delete(step)
        }
      },
    }
  }

  inProgress(): readonly StepInfo[] {
    return [...this.#inProgress]
  }

  /** A stub in vain has the name of no step, and a body ran in earnest. */
  refuseUnused(): void {
    const all = Object.entries(this.#stubs).flatMap(([name, stub]) =>
      typeof stub === 'function' ? [name] : Object.keys(stub).map((stepName) => labelOf(name, stepName)),
    )
    const unused = all.filter((label) => !this.#used.has(label))
    if (unused.length > 0) throw new UnusedStubError(unused, [...this.#asked])
  }

  #stubOf({ jobName, stepName }: StepInfo): StepStub | undefined {
    this.#asked.add(stepName)
    const ofJob = own(this.#stubs, jobName)
    const inJob = typeof ofJob === 'object' ? own(ofJob, stepName) : undefined
    const anywhere = own(this.#stubs, stepName)
    const stub = inJob ?? (typeof anywhere === 'function' ? anywhere : undefined)
    if (stub !== undefined) this.#used.add(inJob === undefined ? stepName : labelOf(jobName, stepName))
    return stub
  }
}

function labelOf(jobName: string, stepName: string): string {
  return `${jobName}: ${stepName}`
}

function refuseBadStub(name: string, stub: StepStubs[string], jobNames: readonly string[]): void {
  if (typeof stub === 'function') return
  if (typeof stub !== 'object' || stub === null) throw noStub(`"${name}"`, stub)
  if (!jobNames.includes(name)) {
    const known = jobNames.map((each) => `"${each}"`).join(', ')
    throw new InvalidOptionError(`steps: "${name}" has stubs as a job has, but the jobs here are ${known || 'none'}.`)
  }
  for (const [stepName, each] of Object.entries(stub)) {
    if (typeof each !== 'function') throw noStub(`"${stepName}" of job "${name}"`, each)
  }
}

function requireRecord(stubs: StepStubs): StepStubs {
  if (typeof stubs === 'object' && stubs !== null && !Array.isArray(stubs)) return stubs
  throw new InvalidOptionError('steps must be stubs by the names of their steps, as in { charge: () => "receipt" }.')
}

function noStub(whose: string, found: unknown): InvalidOptionError {
  return new InvalidOptionError(`steps: the stub of ${whose} must be a function, not ${String(found)}.`)
}

function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
