import type { BuildSearchIndexOutput } from '../build-search-index'
import { STOP_WORDS } from '../tokenise'
import { sampleDocuments } from './documents'

interface CountedDocument {
  readonly id: string
  readonly words: readonly string[]
}

/**
 * What is wrong with the result of `build-search-index` for sample documents; nothing, when it is right. Here there is
 * no index: every query goes through every document, and the formula is written out once more.
 */
export function checkSearch(output: BuildSearchIndexOutput, count: number, seed: number): string[] {
  const documents = [...sampleDocuments(count, seed)].map(({ id, title, body }) => ({
    id,
    words: split(`${title} ${body}`),
  }))
  const words = documents.reduce((sum, document) => sum + document.words.length, 0)
  const problems: string[] = []
  const expect = (what: string, got: number, expected: number): void => {
    if (Math.abs(got - expected) > 1e-9) problems.push(`${what}: ${got} instead of ${expected}`)
  }
  expect('documents', output.documents, count)
  expect('average length', output.averageLength, words / count)
  expect('terms', output.terms, new Set(documents.flatMap((document) => document.words)).size)
  expect(
    'postings',
    output.postings,
    documents.reduce((sum, document) => sum + new Set(document.words).size, 0),
  )
  for (const { query, hits } of output.answers) {
    const expected = scan(documents, query, words / count)
    const ids = hits.map((hit) => hit.id).join()
    const expectedIds = expected.map((hit) => hit.id).join()
    if (ids !== expectedIds) problems.push(`"${query}": found ${ids} instead of ${expectedIds}`)
    for (const [place, hit] of hits.entries()) expect(`"${query}" at ${place}`, hit.score, expected[place]?.score ?? 0)
  }
  return problems
}

function split(text: string): string[] {
  const parts = text
    .normalize('NFKC')
    .toLowerCase()
    .split(/[^\p{L}\p{N}\p{M}]+/u)
  return parts.filter((word) => word !== '' && !STOP_WORDS.has(word))
}

function scan(documents: readonly CountedDocument[], query: string, average: number): { id: string; score: number }[] {
  const scores = new Map<string, number>()
  for (const term of new Set(split(query))) {
    const counted = documents.map(({ id, words }) => ({
      id,
      length: words.length,
      times: words.filter((word) => word === term).length,
    }))
    const holding = counted.filter(({ times }) => times > 0)
    const rarity = Math.log((documents.length + 1) / (holding.length + 0.5))
    for (const { id, length, times } of holding) {
      const damping = 1.2 * (0.25 + (0.75 * length) / average)
      scores.set(id, (scores.get(id) ?? 0) + rarity * ((times * 2.2) / (times + damping)))
    }
  }
  const hits = [...scores].map(([id, score]) => ({ id, score }))
  return hits.sort((a, b) => b.score - a.score || a.id.localeCompare(b.id, 'en')).slice(0, 10)
}
