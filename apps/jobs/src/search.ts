import { inverseFrequency, termWeight } from './bm25'
import type { FileSource } from './files'
import { documentEntries, INDEX_PARTS, type Postings, readExtent, termEntries } from './index-files'
import { partOf } from './index-shard'
import { type IndexManifest, indexManifest } from './merge-index'
import { toText } from './text'
import { tokenise } from './tokenise'

export interface Hit {
  readonly id: string
  readonly score: number
}

export interface SearchIndex {
  readonly manifest: IndexManifest
  /** The best documents first; equal scores by id. */
  search(query: string, limit?: number): Promise<Hit[]>
}

/** Opens an index by the reference of its manifest. Parts are loaded when a query first needs them. */
export async function openSearchIndex(files: FileSource, reference: string): Promise<SearchIndex> {
  const bytes = await files.read(reference, 0, await files.size(reference))
  const manifest = indexManifest.parse(JSON.parse(toText(bytes)))
  const documents = await readExtent(files, manifest.lengths, documentEntries)
  const parts = new Map<number, Promise<ReadonlyMap<string, Postings>>>()
  const postingsOf = async (term: string): Promise<Postings> => {
    const part = partOf(term)
    const loaded = parts.get(part) ?? loadPart(files, manifest, part)
    parts.set(part, loaded)
    return (await loaded).get(term) ?? []
  }
  return {
    manifest,
    search: async (query, limit = 10) => {
      const scores = new Map<number, number>()
      for (const term of new Set(tokenise(query))) {
        addScores({ scores, postings: await postingsOf(term), documents, averageLength: manifest.averageLength })
      }
      const hits = [...scores].map(([number, score]) => ({ id: documents[number]?.[0] ?? '', score }))
      return hits.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, limit)
    },
  }
}

async function loadPart(
  files: FileSource,
  manifest: IndexManifest,
  part: number,
): Promise<ReadonlyMap<string, Postings>> {
  const extent = manifest.parts[part]
  if (extent === undefined) throw new Error(`The index has ${manifest.parts.length} parts, not ${INDEX_PARTS}.`)
  return new Map(await readExtent(files, extent, termEntries))
}

interface AddScoresParams {
  readonly scores: Map<number, number>
  readonly postings: Postings
  readonly documents: readonly (readonly [string, number])[]
  readonly averageLength: number
}

function addScores({ scores, postings, documents, averageLength }: AddScoresParams): void {
  const inverse = inverseFrequency(documents.length, postings.length / 2)
  for (let at = 0; at < postings.length; at += 2) {
    const document = postings[at] ?? 0
    const frequency = postings[at + 1] ?? 0
    const weight = termWeight({ inverse, frequency, length: documents[document]?.[1] ?? 0, averageLength })
    scores.set(document, (scores.get(document) ?? 0) + weight)
  }
}
