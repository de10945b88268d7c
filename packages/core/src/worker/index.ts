export type { DrainOptions, DrainResult } from './until-idle'
export { asPlain } from './plain-execution'
export { Worker } from './worker'
