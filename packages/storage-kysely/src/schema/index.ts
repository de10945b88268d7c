export { migrate, reportSchema, type SchemaReport } from './migrate'
export { SchemaGate } from './schema-gate'
