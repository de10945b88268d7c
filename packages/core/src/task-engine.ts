export { createInstance, type Instance } from './durably'
export { asPlain, type PlainAttempt, type PlainBody } from './plain-job'
export type { NewRun } from './writes'
export type { RunRecord } from './records'
export { DEFAULTS } from './trigger'
export { decodeValue } from './values'

/** What the task queue builds on beside the public entry. */
