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
export {
  createScriptedJobs,
  isOutputOf,
  outcomeOf,
  type BodyStart,
  type Script,
  type ScriptAction,
  type ScriptedJobsOptions,
  type ScriptOutcome,
  type ScriptOutput,
  type ScriptStep,
} from './simulation/scripted-jobs'
export { simulate, type SimulateOptions, type SimulationReport } from './simulation/simulate'
export { ENGINE_MUTANTS, STORAGE_MUTANTS } from './simulation/storage-mutants'
