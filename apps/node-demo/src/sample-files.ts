import { createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { generateCsv, generateDocuments, sampleQueries } from '@coji/durably-jobs/sample'

export const SEED = 20_261_118
export const DOCUMENTS = 5_000
/** The import is cut into so many batches, whatever its size. */
export const BATCHES = 100

export interface SampleFiles {
  readonly csvBytes: number
  readonly documentBytes: number
}

/** Writes the files that the payloads below refer to. */
export async function writeSampleFiles(folder: string, rows: number, signal: AbortSignal): Promise<SampleFiles> {
  const csv = join(folder, 'orders.csv')
  const documents = join(folder, 'documents.jsonl')
  await pipeline(generateCsv(rows, SEED), createWriteStream(csv), { signal })
  await pipeline(generateDocuments(DOCUMENTS, SEED), createWriteStream(documents), { signal })
  return { csvBytes: (await stat(csv)).size, documentBytes: (await stat(documents)).size }
}

export function importPayload(rows: number) {
  return { file: 'orders.csv', into: 'orders', batchRows: Math.ceil(rows / BATCHES) }
}

export function indexPayload() {
  return { file: 'documents.jsonl', into: 'index', queries: sampleQueries(SEED) }
}
