export { createEvents } from './events'
export { createLogs } from './logs'
export { createReads, msUntil, type Reader, type Reads } from './reads'
export { isOfJobs } from './run-search'
