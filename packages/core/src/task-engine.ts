/** What the task queue builds on beside the public entry. */
export { createInstance, type Instance } from './durably'
export { asPlain, type PlainAttempt, type PlainBody } from './plain-job'
export type { NewRun, RunRecord } from './storage'
export { DEFAULTS } from './trigger'
export { decodeValue } from './values'
