export type { DrainOptions, DrainResult } from './drain'
export { Worker } from './worker'
