import type { Engine } from '../engine'
import type { Interruption } from './interruption'
import type { LookTogether } from './look-together'
import type { OpenCalls } from './open-calls'
import type { RunRecord, StepRecord } from '../port'
import type { RunWriter } from '../commit'
import type { StepLog } from '../job'
import type { Suspension } from './suspension'

export type RecordedStep = Pick<
  StepRecord,
  'id' | 'kind' | 'status' | 'attempt' | 'output' | 'error' | 'errorDetail' | 'checkpoint' | 'dueAt' | 'isDue'
>

/** What the ctx calls of one execution share. */
export interface StepScope {
  readonly engine: Engine
  readonly run: RunRecord
  /** When the claim had been answered, by the worker's own clock: nothing that is timed from there comes early. */
  readonly begunAt: number
  readonly writer: RunWriter
  readonly interruption: Interruption
  readonly calls: OpenCalls
  /** Live rows by name: completed, or started and without an outcome. */
  readonly recorded: Map<string, RecordedStep>
  /** The last failed row of a name, as an execution before this one left it. */
  readonly failed: Map<string, RecordedStep>
  readonly failures: Map<string, number>
  /** Those of the run's current attempt, which a policy counts. */
  readonly failuresOfAttempt: Map<string, number>
  readonly suspension: Suspension
  readonly looks: LookTogether
  completedSteps: number
  /** The step that an error came out of, to tell which step a failed run failed in. */
  readonly stepOfError: Map<unknown, string>
  /** Ends the execution: an operator has to decide how the run goes on. */
  park(reason: string): void
  logFor(stepName: string | null): StepLog
  progress(current: number, total?: number, message?: string): void
}
