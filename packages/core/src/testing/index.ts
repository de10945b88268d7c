export { createFakeClock, settled, type FakeClock } from './fake-clock'
export { newRun, runCommit, stepWrite } from './contract/builders'
export {
  casesFor,
  STORAGE_CONTRACT,
  type ContractCase,
  type ContractGroup,
  type ContractStorage,
  type ExcludedCase,
  type SelectedCases,
  type StorageContractSetup,
} from './contract/index'
export {
  describeFailure,
  explore,
  seedsUntilFound,
  type Exploration,
  type ExploreOptions,
  type Failure,
} from './simulation/explore'
export { coverageTable, FAULTS, SIMULATED_TRANSITIONS, type Coverage, type Fault } from './simulation/faults'
export type { BodyStart, ScriptedJobsOptions } from './simulation/scripted-bodies'
export { createScriptedJobs } from './simulation/scripted-jobs'
export {
  isOutputOf,
  outcomeOf,
  type Fate,
  type FateOf,
  type OutputOf,
  type ScriptOutcome,
  type ScriptOutput,
  type ScriptResult,
} from './simulation/script-outcome'
export type {
  Script,
  ScriptAction,
  ScriptBranch,
  ScriptChild,
  ScriptChunk,
  ScriptedJobName,
  ScriptPolicy,
  ScriptSleep,
  ScriptStep,
  ScriptStream,
  ScriptTransaction,
  ScriptWaitFor,
} from './simulation/scripts'
export { SCRIPTED_JOBS } from './simulation/scripts'
export { simulate, type SimulateOptions, type SimulationReport } from './simulation/simulate'
export { ENGINE_MUTANTS, STORAGE_MUTANTS, type Mutant } from './simulation/storage-mutants'
export { NeverEndsError, NeverWaitsError, UnusedStubError } from './jobs/errors'
export type { StepStub, StepStubs } from './jobs/step-stubs'
export {
  createTestDurably,
  type EndedRun,
  type RunUnderTest,
  type TestDurably,
  type TestDurablyOptions,
} from './test-durably'
