import { z } from 'zod'
import type { FileSource, FileStore } from './files'
import { digestOf } from './hash'
import { toBytes, toText } from './text'

/** Terms are spread over so many parts by their hash; a part is what one merge holds in memory. */
export const INDEX_PARTS = 8

/** `[document, frequency, document, frequency, …]`, documents by their number in the file, ascending. */
export type Postings = readonly number[]

export const termEntries = z.array(z.tuple([z.string(), z.array(z.number())]))
export const documentEntries = z.array(z.tuple([z.string(), z.number()]))

/** A piece of a file and what it held when it was written. */
export interface Extent {
  readonly file: string
  readonly start: number
  readonly end: number
  readonly digest: string
}

/** Writes values one after the other into one file, and says where each of them is. */
export async function writeExtents(files: FileStore, file: string, values: readonly unknown[]): Promise<Extent[]> {
  const pieces = values.map((value) => toBytes(`${JSON.stringify(value)}\n`))
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.byteLength, 0))
  const extents: Extent[] = []
  let start = 0
  for (const piece of pieces) {
    whole.set(piece, start)
    const end = start + piece.byteLength
    extents.push({ file, start, end, digest: digestOf(piece) })
    start = end
  }
  await files.write(file, whole)
  return extents
}

export async function readExtent<T>(files: FileSource, extent: Extent, schema: z.ZodType<T>): Promise<T> {
  const bytes = await files.read(extent.file, extent.start, extent.end)
  if (digestOf(bytes) !== extent.digest) throw new Error(`${extent.file} is not what a step of this run wrote.`)
  return schema.parse(JSON.parse(toText(bytes)))
}
