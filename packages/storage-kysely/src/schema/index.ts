export { migrate } from './migrate'
export { SchemaGate } from './schema-gate'
