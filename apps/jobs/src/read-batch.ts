import type { FileSource } from './files'
import type { Splitter } from './split'
import { toBytes, toText, wholeCharacters } from './text'

const READ_BYTES = 256 * 1024
const MAX_ITEM_BYTES = 4 * 1024 * 1024

export interface ReadBatchParams<T> {
  readonly source: FileSource
  readonly file: string
  readonly size: number
  /** Where an item begins. */
  readonly offset: number
  readonly limit: number
  readonly split: Splitter<T>
}

export interface Batch<T> {
  readonly items: readonly T[]
  /** Where the next item begins; the size of the file at its end. */
  readonly nextOffset: number
}

/**
 * Up to `limit` items from a place in a file, with no more than one range of it in memory. Every read begins where an
 * item begins, so nothing but the offset has to be remembered between two batches.
 */
export async function readBatch<T>(params: ReadBatchParams<T>): Promise<Batch<T>> {
  const { source, file, size, limit, split } = params
  const items: T[] = []
  let offset = params.offset
  let length = READ_BYTES
  while (items.length < limit && offset < size) {
    const end = Math.min(offset + length, size)
    const text = decode(await source.read(file, offset, end), end === size, `${file} at byte ${offset}`)
    const found = split(text, { limit: limit - items.length, isLast: end === size })
    for (const item of found.items) items.push(item)
    if (found.consumed > 0) offset += toBytes(text.slice(0, found.consumed)).byteLength
    else length = longer(length, `${file} at byte ${offset}`)
  }
  return { items, nextOffset: offset }
}

function decode(bytes: Uint8Array, isLast: boolean, where: string): string {
  try {
    return toText(isLast ? bytes : wholeCharacters(bytes))
  } catch (cause) {
    throw new Error(`The file is not UTF-8: ${where} and after.`, { cause })
  }
}

function longer(length: number, where: string): number {
  if (length >= MAX_ITEM_BYTES)
    throw new Error(`There is no end of a record within 4 MiB: ${where}. An unclosed quote?`)
  return length * 2
}
