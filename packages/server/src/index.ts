export { bulkJob, type BulkResult } from './bulk'
export { createDurablyHandler, type DurablyHandler } from './handler'
export type { Asked, Granted, HandlerOptions, RedactedField } from './options'
export { ACTIONS, type Action, type Done, type Me, type Problem, type RunPage } from './wire'
