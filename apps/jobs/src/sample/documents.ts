import type { Document } from '../index-shard'
import { createRandom, type Random } from './random'

const CHUNK_DOCUMENTS = 100
const VOCABULARY = 6_000
const SYLLABLES = [
  ...(['ba', 'cor', 'del', 'fen', 'gra', 'hol', 'ix', 'jun', 'kel', 'lum'] as const),
  ...(['mar', 'nor', 'ost', 'pra', 'quin', 'ros', 'sel', 'tor', 'ul', 'ven'] as const),
] as const
const COMMON = ['the', 'of', 'and', 'to', 'in', 'is', 'that', 'with', 'was', 'for'] as const
/** Each needs a rule of its own: compatibility forms, case, accents, other scripts, digits. */
const SPECIAL = [
  'ﬁnal',
  'ＡＢＣ',
  'Straße',
  'CAFÉ',
  'cafe\u0301',
  '東京',
  '２０２６',
  'naïve',
  'Ελλάδα',
  "it's",
] as const

/** Made-up documents; words follow Zipf's law, as in real ones. */
export function* sampleDocuments(count: number, seed: number): Generator<Document> {
  const random = createRandom(seed)
  const words = vocabulary(random)
  for (let number = 1; number <= count; number++) {
    yield {
      id: `doc-${String(number).padStart(6, '0')}`,
      title: sentence(random, words, 4),
      body: Array.from({ length: 4 + random.below(5) }, () => sentence(random, words, 10 + random.below(10))).join(' '),
    }
  }
}

/** The documents as JSON lines, in chunks of text. */
export async function* generateDocuments(count: number, seed: number): AsyncGenerator<string> {
  let chunk = ''
  let gathered = 0
  for (const document of sampleDocuments(count, seed)) {
    chunk += `${JSON.stringify(document)}\n`
    gathered += 1
    if (gathered % CHUNK_DOCUMENTS > 0) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}

/** Queries with answers among the sample documents: common and rare words, forms to normalise, nothing at all. */
export function sampleQueries(seed: number): string[] {
  const words = vocabulary(createRandom(seed))
  const word = (rank: number): string => words[rank] ?? ''
  return [
    `${word(3)} ${word(40)}`,
    `the ${word(900).toUpperCase()}`,
    `${word(12)} ${word(12)} ${word(2_500)}`,
    'final abc',
    'Café, straße & 2026',
    '東京',
    'no-such-word-anywhere'.replaceAll('-', ''),
    'the of and',
  ]
}

function vocabulary(random: Random): readonly string[] {
  const words = new Set<string>()
  while (words.size < VOCABULARY) {
    words.add(Array.from({ length: 2 + random.below(3) }, () => random.pick(SYLLABLES)).join(''))
  }
  return [...words]
}

function sentence(random: Random, words: readonly string[], length: number): string {
  const text = Array.from({ length }, () => word(random, words)).join(' ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${random.pick(['.', '.', '!', '?'])}`
}

function word(random: Random, words: readonly string[]): string {
  const kind = random.next()
  if (kind < 0.3) return random.pick(COMMON)
  if (kind < 0.32) return random.pick(SPECIAL)
  // The inverse of the harmonic sum: rank r comes about 1/r as often as the first.
  const rank = Math.floor(Math.exp(random.next() * Math.log(words.length + 1))) - 1
  return words[rank] ?? ''
}
