export { createInstance, type Instance } from './instance'
export { asPlain, type PlainAttempt, type PlainBody } from './job'
export type { NewRun, RunRecord } from './port'
export { DEFAULTS } from './client'
export { decodeValue } from './base'

/** What the task queue builds on beside the public entry. */
