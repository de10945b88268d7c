/** What plugins and packages that extend durably are written with, check options of their own with, and make runs of their own with. */

export {
  bucketOf,
  encodeValue,
  goRounds,
  type Histogram,
  instantIn,
  type KnownOptions,
  MAX_VALUE_BYTES,
  type OptionNames,
  refuseBadKey,
  refuseBadText,
  refuseMisspelledOptions,
  refuseUnknownOptions,
  refuseBadDuration,
  requireBoolean,
  requireDelay,
  requireDuration,
  requireInteger,
  requireLabels,
} from './base'
export {
  addCounts,
  capability,
  type HourCounts,
  type HourKey,
  hourName,
  type HourRow,
  type RunEnd,
  type StatisticsStorage,
} from './port'
export {
  type Gathering,
  hasLabels,
  type Numbered as NumberedEvent,
  type OfMessage as EventOfMessage,
  type OfRun as EventOfRun,
  type OfSchedule as EventOfSchedule,
  type OfStep as EventOfStep,
} from './job'
export type { Hooks, RecordedHistory, RunInfo, StepInfo } from './engine'
export type { StartedTerm, Uninstall, WorkerSwitch } from './instance'
export type { DraftOptions, RunDraft, RunDrafts } from './client'
