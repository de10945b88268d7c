/** What packages that extend durably check the options of their own with, and make runs of their own with. */

export {
  bucketOf,
  encodeValue,
  type Histogram,
  type KnownOptions,
  type OptionNames,
  refuseMisspelledOptions,
  refuseUnknownOptions,
  requireDuration,
  requireInteger,
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
export { hasLabels, requireLabels } from './job'
export type { DraftOptions, RunDraft, RunDrafts } from './client'
