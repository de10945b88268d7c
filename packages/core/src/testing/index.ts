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
export { NeverEndsError, NeverWaitsError, UnusedStubError } from './jobs/errors'
export type { StepStub, StepStubs } from './jobs/step-stubs'
export {
  createTestDurably,
  type EndedRun,
  type RunUnderTest,
  type TestDurably,
  type TestDurablyOptions,
} from './test-durably'
