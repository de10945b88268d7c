import { defineJob } from '@coji/durably-core'
import { z } from 'zod'
import type { FileStore } from './files'
import { INDEX_PARTS } from './index-files'
import { type Shard, writeShard } from './index-shard'
import { type MergedPart, mergeLengths, mergePart, writeManifest } from './merge-index'
import { type Hit, openSearchIndex } from './search'

export const buildSearchIndexInput = z.object({
  /** A reference to the documents: one `{ id, title, body }` a line. */
  file: z.string().min(1),
  /** Where the index goes. */
  into: z.string().min(1),
  shardDocuments: z.number().int().min(1).max(5_000).default(250),
  /** Answered by the finished index, as a last step. */
  queries: z.array(z.string()).max(100).default([]),
})

export const buildSearchIndexOutput = z.object({
  /** The reference that `openSearchIndex` takes. */
  index: z.string(),
  documents: z.number(),
  terms: z.number(),
  postings: z.number(),
  averageLength: z.number(),
  answers: z.array(z.object({ query: z.string(), hits: z.array(z.object({ id: z.string(), score: z.number() })) })),
})

export type BuildSearchIndexInput = z.output<typeof buildSearchIndexInput>
export type BuildSearchIndexOutput = z.output<typeof buildSearchIndexOutput>

/** Of 100: shards take most of the time, then parts are merged, then queries are answered. */
const SHARDS_DONE = 75
const PARTS_DONE = 97

/**
 * The job `build-search-index`: inverts documents shard by shard, merges the shards part by part, writes the manifest
 * and answers the queries from what it wrote. Steps return references and digests; the index itself stays in files.
 */
export function createBuildSearchIndex({ files }: { readonly files: FileStore }) {
  return defineJob(
    { name: 'build-search-index', input: buildSearchIndexInput, output: buildSearchIndexOutput },
    async (ctx, { file, into, shardDocuments, queries }) => {
      const size = await ctx.run('open', () => files.size(file))
      const shards: Shard[] = []
      let first = 0
      for (let offset = 0; offset < size; offset = shards.at(-1)?.nextOffset ?? size) {
        const name = `shard ${shards.length + 1}`
        const step = { files, file, size, offset, first, limit: shardDocuments, shard: `${into}/${name}.jsonl` }
        const shard = await ctx.run(name, () => writeShard(step))
        shards.push(shard)
        first += shard.documents
        const message = `${first.toLocaleString('en')} documents`
        ctx.progress(Math.floor((shard.nextOffset / size) * SHARDS_DONE), 100, message)
      }
      const lengths = await ctx.run('lengths', () => mergeLengths(files, shards, `${into}/lengths.json`))
      const parts: MergedPart[] = []
      for (let part = 0; part < INDEX_PARTS; part++) {
        const to = `${into}/part ${part + 1}.json`
        parts.push(await ctx.run(`merge ${part + 1} of ${INDEX_PARTS}`, () => mergePart({ files, shards, part, to })))
        const done = SHARDS_DONE + ((PARTS_DONE - SHARDS_DONE) * (part + 1)) / INDEX_PARTS
        ctx.progress(Math.floor(done), 100, `merged ${part + 1} of ${INDEX_PARTS}`)
      }
      const index = `${into}/index.json`
      const { documents, terms, postings, averageLength } = await ctx.run('manifest', () =>
        writeManifest(files, index, { lengths, parts }),
      )
      const answers = await ctx.run('answer queries', () => answer(files, index, queries))
      ctx.progress(100, 100, `${terms.toLocaleString('en')} terms`)
      return { index, documents, terms, postings, averageLength, answers }
    },
  )
}

async function answer(files: FileStore, reference: string, queries: readonly string[]) {
  const index = await openSearchIndex(files, reference)
  const answers: { query: string; hits: Hit[] }[] = []
  for (const query of queries) answers.push({ query, hits: await index.search(query) })
  return answers
}
