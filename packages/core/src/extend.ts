/** What packages that extend durably check the options of their own with, and make runs of their own with. */

export {
  encodeValue,
  type KnownOptions,
  type OptionNames,
  refuseMisspelledOptions,
  refuseUnknownOptions,
  requireDuration,
  requireInteger,
} from './base'
export { hasLabels, requireLabels } from './job'
export type { DraftOptions, RunDraft, RunDrafts } from './client'
