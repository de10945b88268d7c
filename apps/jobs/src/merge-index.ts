import { z } from 'zod'
import type { FileStore } from './files'
import { documentEntries, type Extent, readExtent, termEntries, writeExtents } from './index-files'
import type { Shard } from './index-shard'

const extent = z.object({ file: z.string(), start: z.number(), end: z.number(), digest: z.string() })

/** The small file at the root of an index: what to load for which term. */
export const indexManifest = z.object({
  documents: z.number(),
  averageLength: z.number(),
  terms: z.number(),
  postings: z.number(),
  lengths: extent,
  parts: z.array(extent),
})

export type IndexManifest = z.output<typeof indexManifest>

export interface MergedPart {
  readonly extent: Extent
  readonly terms: number
  readonly postings: number
}

export interface MergePartParams {
  readonly files: FileStore
  readonly shards: readonly Shard[]
  readonly part: number
  readonly to: string
}

/** One part of all shards as one file, terms in order. Shards are in the order of documents: postings only append. */
export async function mergePart({ files, shards, part, to }: MergePartParams): Promise<MergedPart> {
  const merged = new Map<string, number[]>()
  for (const shard of shards) {
    const source = shard.parts[part]
    if (source === undefined) continue
    for (const [term, postings] of await readExtent(files, source, termEntries)) {
      const before = merged.get(term)
      if (before === undefined) merged.set(term, postings)
      else for (const number of postings) before.push(number)
    }
  }
  const entries = [...merged].sort(([a], [b]) => (a < b ? -1 : 1))
  const written = await writeOne(files, to, entries)
  const numbers = entries.reduce((total, [, postings]) => total + postings.length, 0)
  return { extent: written, terms: entries.length, postings: numbers / 2 }
}

export interface MergedLengths {
  readonly extent: Extent
  readonly documents: number
  readonly averageLength: number
}

/** The ids and lengths of all documents as one file, by document number. */
export async function mergeLengths(files: FileStore, shards: readonly Shard[], to: string): Promise<MergedLengths> {
  const all: [string, number][] = []
  for (const shard of shards) all.push(...(await readExtent(files, shard.lengths, documentEntries)))
  const words = all.reduce((total, [, length]) => total + length, 0)
  return {
    extent: await writeOne(files, to, all),
    documents: all.length,
    averageLength: words / Math.max(all.length, 1),
  }
}

export async function writeManifest(
  files: FileStore,
  to: string,
  { lengths, parts }: { readonly lengths: MergedLengths; readonly parts: readonly MergedPart[] },
): Promise<IndexManifest> {
  const manifest: IndexManifest = {
    documents: lengths.documents,
    averageLength: lengths.averageLength,
    terms: parts.reduce((total, part) => total + part.terms, 0),
    postings: parts.reduce((total, part) => total + part.postings, 0),
    lengths: lengths.extent,
    parts: parts.map((part) => part.extent),
  }
  await writeOne(files, to, manifest)
  return manifest
}

async function writeOne(files: FileStore, to: string, value: unknown): Promise<Extent> {
  const [written] = await writeExtents(files, to, [value])
  if (written === undefined) throw new Error(`${to} was not written.`)
  return written
}
