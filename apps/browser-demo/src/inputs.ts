import type { BuildSearchIndexInput, ImportCsvInput } from '@coji/durably-jobs'
import { generateCsv, generateDocuments, sampleQueries } from '@coji/durably-jobs/sample'
import type { Chunks, DemoFiles } from './demo-files'

export const SAMPLE_ROWS = [20_000, 100_000, 500_000] as const
export const DOCUMENTS = 5_000

const SEED = 20_261_118
const BATCH_ROWS = 1_000
const SHARD_DOCUMENTS = 100
const LOCK = 'durably-demo-input:'

/** Told how much of the input is in place, from 0 to 1. */
export type OnShare = (share: number) => void

export interface StartParams<TInput, TRun> {
  readonly files: DemoFiles
  readonly onShare: OnShare
  readonly trigger: (input: TInput) => Promise<TRun>
}

/** Puts a sample CSV where the job finds it, also after a reload, and triggers the import. */
export function startSampleImport<TRun>(rows: number, params: StartParams<ImportCsvInput, TRun>): Promise<TRun> {
  const rowsPerChunk = 1_000
  const onChunk = (_length: number, chunk: number) => params.onShare((chunk * rowsPerChunk) / rows)
  return startImport(counted(generateCsv(rows, SEED), onChunk), params)
}

/** Copies a file that a person chose, because the page could not read it again after a reload. */
export function startFileImport<TRun>(file: File, params: StartParams<ImportCsvInput, TRun>): Promise<TRun> {
  const onChunk = (length: number) => params.onShare(length / Math.max(1, file.size))
  return startImport(counted(chunksOf(file), onChunk), params)
}

export function startIndex<TRun>({ files, onShare, trigger }: StartParams<BuildSearchIndexInput, TRun>): Promise<TRun> {
  const documentsPerChunk = 100
  const onChunk = (_length: number, chunk: number) => onShare((chunk * documentsPerChunk) / DOCUMENTS)
  return inFolder(async (folder) => {
    const file = `${folder}/documents.jsonl`
    await files.writeChunks(file, counted(generateDocuments(DOCUMENTS, SEED), onChunk))
    const queries = sampleQueries(SEED)
    return trigger({ file, into: `${folder}/index`, shardDocuments: SHARD_DOCUMENTS, queries })
  })
}

function startImport<TRun>(chunks: Chunks, { files, trigger }: StartParams<ImportCsvInput, TRun>): Promise<TRun> {
  return inFolder(async (folder) => {
    const file = `${folder}/orders.csv`
    await files.writeChunks(file, chunks)
    return trigger({ file, into: `${folder}/accepted`, batchRows: BATCH_ROWS })
  })
}

/** Each run has a folder of its own. The lock tells other tabs that there is not yet a run that refers to it. */
async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = Array.from(crypto.getRandomValues(new Uint8Array(10)), (byte) => byte.toString(36)).join('')
  // Insecure pages have no locks, and no files that another tab could see.
  return 'locks' in navigator ? await navigator.locks.request(`${LOCK}${folder}`, () => work(folder)) : work(folder)
}

/** The folder a payload refers to. */
export function folderOf(payload: unknown): string | null {
  if (typeof payload !== 'object' || payload === null || !('file' in payload)) return null
  return typeof payload.file === 'string' ? (payload.file.split('/')[0] ?? null) : null
}

/** Folders that some tab is filling right now. */
export async function foldersInProgress(): Promise<string[]> {
  const { held = [] } = await navigator.locks.query()
  return held.flatMap(({ name = '' }) => (name.startsWith(LOCK) ? [name.slice(LOCK.length)] : []))
}

async function* chunksOf(file: File): AsyncGenerator<Uint8Array> {
  const reader = file.stream().getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
}

async function* counted<T extends string | Uint8Array>(
  chunks: AsyncIterable<T>,
  onChunk: (length: number, chunk: number) => void,
): AsyncGenerator<T> {
  let length = 0
  let count = 0
  for await (const chunk of chunks) {
    yield chunk
    length += chunk.length
    count += 1
    onChunk(length, count)
  }
}
