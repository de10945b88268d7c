const K1 = 1.2
const B = 0.75

/** How rare a term is: the more, the fewer of the documents hold it. */
export function inverseFrequency(documents: number, holding: number): number {
  return Math.log(1 + (documents - holding + 0.5) / (holding + 0.5))
}

export interface TermWeightParams {
  readonly inverse: number
  readonly frequency: number
  readonly length: number
  readonly averageLength: number
}

/** What one term adds to the score of a document (BM25). */
export function termWeight({ inverse, frequency, length, averageLength }: TermWeightParams): number {
  return (inverse * frequency * (K1 + 1)) / (frequency + K1 * (1 - B + (B * length) / averageLength))
}
