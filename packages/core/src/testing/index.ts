export { createFakeClock, type FakeClock, settled } from './fake-clock'
export { newRun, runCommit, stepWrite } from './contract/builders'
export {
  casesFor,
  type ContractCase,
  type ContractGroup,
  type ContractStorage,
  type ExcludedCase,
  type SelectedCases,
  STORAGE_CONTRACT,
  type StorageContractSetup,
} from './contract/index'
export {
  describeFailure,
  type Exploration,
  explore,
  type ExploreOptions,
  type Failure,
  seedsUntilFound,
} from './simulation/explore'
export { type Coverage, coverageTable, type Fault, FAULTS, SIMULATED_TRANSITIONS } from './simulation/faults'
export type { BodyStart, ScriptedJobsOptions } from './simulation/scripted-bodies'
export { createScriptedJobs } from './simulation/scripted-jobs'
export {
  type Fate,
  type FateOf,
  isOutputOf,
  outcomeOf,
  type OutputOf,
  type ScriptOutcome,
  type ScriptOutput,
  type ScriptResult,
} from './simulation/script-outcome'
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
} from './simulation/scripts'
export { simulate, type SimulateOptions, type SimulationReport } from './simulation/simulate'
export { ENGINE_MUTANTS, type Mutant, STORAGE_MUTANTS } from './simulation/storage-mutants'
export { NeverEndsError, NeverWaitsError, UnusedStubError } from './jobs/errors'
export type { StepStub, StepStubs } from './jobs/step-stubs'
export {
  createTestDurably,
  type EndedRun,
  type RunUnderTest,
  type TestDurably,
  type TestDurablyOptions,
} from './test-durably'
