import { z } from 'zod'
import type { FileStore } from './files'
import { hash32 } from './hash'
import { type Extent, INDEX_PARTS, writeExtents } from './index-files'
import { readBatch } from './read-batch'
import { splitLines } from './split'
import { tokenise } from './tokenise'

const documentLine = z.object({ id: z.string(), title: z.string(), body: z.string() })

export type Document = z.output<typeof documentLine>

export interface WriteShardParams {
  readonly files: FileStore
  readonly file: string
  readonly size: number
  readonly offset: number
  readonly limit: number
  /** The number of the first document of this shard in the file. */
  readonly first: number
  readonly shard: string
}

/** A shard as a step returns it: where things are, never the things. */
export interface Shard {
  readonly nextOffset: number
  readonly documents: number
  readonly lengths: Extent
  readonly parts: readonly Extent[]
}

/** Inverts some of the documents and writes them as one file: their lengths first, then their terms part by part. */
export async function writeShard(params: WriteShardParams): Promise<Shard> {
  const { items, nextOffset } = await readBatch({ source: params.files, split: splitLines, ...params })
  const documents = items.map((line) => documentLine.parse(JSON.parse(line)))
  const { lengths, terms } = invert(documents, params.first)
  const [lengthsAt, ...parts] = await writeExtents(params.files, params.shard, [lengths, ...intoParts(terms)])
  if (lengthsAt === undefined) throw new Error(`${params.shard} was written without its lengths.`)
  return { nextOffset, documents: documents.length, lengths: lengthsAt, parts }
}

function invert(documents: readonly Document[], first: number) {
  const lengths: [string, number][] = []
  const terms = new Map<string, number[]>()
  for (const [index, { id, title, body }] of documents.entries()) {
    const words = tokenise(`${title}\n${body}`)
    lengths.push([id, words.length])
    for (const [word, frequency] of frequencies(words)) {
      const postings = terms.get(word)
      if (postings === undefined) terms.set(word, [first + index, frequency])
      else postings.push(first + index, frequency)
    }
  }
  return { lengths, terms }
}

function frequencies(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

/** The part of the index that holds a term. */
export function partOf(term: string): number {
  return hash32(term) % INDEX_PARTS
}

function intoParts(terms: ReadonlyMap<string, number[]>): [string, number[]][][] {
  const parts = Array.from({ length: INDEX_PARTS }, (): [string, number[]][] => [])
  for (const entry of terms) parts[partOf(entry[0])]?.push(entry)
  return parts
}
