import type { BodyScope } from './body-scope'
import type { CallSite } from './call-site'
import type { Engine } from './engine'
import type { Interruption } from './interruption'
import type { RunWriter } from './run-writer'
import type { RunRecord, StepRecord } from './storage'
import type { StepLog } from './step-tools'
import type { Suspension } from './suspension'

/** A body in progress. */
export interface OpenBody {
  readonly scope: StepScope
  readonly stepName: string
}

export type RecordedStep = Pick<
  StepRecord,
  'id' | 'status' | 'attempt' | 'output' | 'error' | 'errorDetail' | 'checkpoint' | 'dueAt' | 'isDue'
>

/** Names and order of one pass through the job function. */
export interface Pass {
  readonly names: Map<string, CallSite>
}

/** A call of `ctx` that has not settled. */
export interface OpenCall {
  readonly stepName: string
  readonly call: Promise<unknown>
  readonly isWait: boolean
}

/** What the ctx calls of one execution share. */
export interface StepScope {
  readonly engine: Engine
  readonly run: RunRecord
  /** When the claim had been answered, by the worker's own clock: nothing that is timed from there comes early. */
  readonly begunAt: number
  readonly writer: RunWriter
  readonly interruption: Interruption
  readonly bodyScope: BodyScope<OpenBody>
  /** Live rows by name: completed, or started and without an outcome. */
  readonly recorded: Map<string, RecordedStep>
  /** The last failed row of a name, as an execution before this one left it. */
  readonly failed: Map<string, RecordedStep>
  readonly failures: Map<string, number>
  /** Those of the run's current attempt, which a policy counts. */
  readonly failuresOfAttempt: Map<string, number>
  readonly suspension: Suspension
  /** Positions of signals that a wait of this execution has taken. */
  readonly usedSignals: Set<number>
  /** ctx calls that have not settled, by index. */
  readonly openCalls: Map<number, OpenCall>
  /** Bodies running, or settled and being recorded, by name. */
  readonly bodies: Map<string, Promise<unknown>>
  pass: Pass
  completedSteps: number
  /** The step that an error came out of, to tell which step a failed run failed in. */
  readonly stepOfError: Map<unknown, string>
  logFor(stepName: string | null): StepLog
  progress(current: number, total?: number, message?: string): void
}
