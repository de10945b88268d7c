import type { DemoOptions } from './arguments'
import type { Dashboard } from './dashboard'
import type { DemoFolder } from './folder'
import type { Demo } from './open-demo'
import type { Screen } from './screen'
import type { WorkerProcess } from './worker-process'

export const IMPORT = 'import CSV'
export const INDEX = 'search index'

export interface DemoParams {
  readonly options: DemoOptions
  readonly folder: DemoFolder
  readonly screen: Screen
  readonly signal: AbortSignal
}

export interface Stage extends DemoParams {
  readonly demo: Demo
  /** Every process of this demo, so that none outlives it. */
  readonly workers: WorkerProcess[]
  /** Once there are tables to look at, if it is wanted. */
  dashboard: Dashboard | null
}

/** The names of the steps that the database has a result of. */
export async function stepNames(demo: Demo, runId: string): Promise<string[]> {
  const steps = await demo.durably.getSteps(runId)
  return steps.filter((step) => step.status === 'completed').map((step) => step.name)
}
