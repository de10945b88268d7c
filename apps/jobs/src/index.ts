export {
  type BuildSearchIndexInput,
  type BuildSearchIndexOutput,
  createBuildSearchIndex,
} from './build-search-index'
export type { FileSource, FileStore } from './files'
export { createImportCsv, type ImportCsvInput, type ImportCsvOutput } from './import-csv'
export { createMemoryFiles } from './memory-files'
export { type Hit, openSearchIndex, type SearchIndex } from './search'
