export { checkImport } from './check-import'
export { checkSearch } from './check-search'
export { generateDocuments, sampleDocuments, sampleQueries } from './documents'
export { generateCsv, type SampleRow, sampleOrders } from './orders'
