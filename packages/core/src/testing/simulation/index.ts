export {
  describeFailure,
  type Exploration,
  explore,
  type ExploreOptions,
  type Failure,
  seedsUntilFound,
} from './explore'
export { type Coverage, coverageTable, type Fault, FAULTS, SIMULATED_TRANSITIONS } from './faults'
export type { BodyStart, ScriptedJobsOptions } from './scripted-bodies'
export { createScriptedJobs } from './scripted-jobs'
export {
  type Fate,
  type FateOf,
  isOutputOf,
  outcomeOf,
  type OutputOf,
  type ScriptOutcome,
  type ScriptOutput,
  type ScriptResult,
} from './script-outcome'
export {
  type Script,
  type ScriptAction,
  type ScriptBranch,
  type ScriptChild,
  type ScriptChunk,
  SCRIPTED_JOBS,
  type ScriptedJobName,
  type ScriptPolicy,
  type ScriptSleep,
  type ScriptStep,
  type ScriptStream,
  type ScriptTransaction,
  type ScriptWaitFor,
} from './scripts'
export { simulate, type SimulateOptions, type SimulationReport } from './simulate'
export { createStorageWithout, type GuardPlace } from './storage-without'
export { ENGINE_MUTANTS, type Mutant, STORAGE_MUTANTS } from './storage-mutants'
