export { Admission, type Admitted, type ClaimLine, limitsOf } from './admission'
export { createBodyScope, type OpenBody, type OpenExecution } from './body-scope'
export {
  announceTrouble,
  ask,
  askPatiently,
  askThen,
  type Engine,
  type Heard,
  isWatched,
  leaseMsOf,
  pauseAfterTrouble,
  recorded,
  reportTrouble,
  type Trouble,
  troubleDelayMs,
  type WorkerState,
} from './engine'
export {
  createPlugins,
  type Hooks,
  longer,
  type RecordedHistory,
  recordedTypes,
  type RunInfo,
  type StepInfo,
} from './hooks'
export { addJobs, jobOf, type KnownJob, listJobs, type NamedJob, noJob } from './known-jobs'
export {
  type DurablyOptions,
  refuseBadLease,
  requireDurablyOptions,
  resolveOptions,
  requireStopOptions,
  type StopOptions,
} from './options'
