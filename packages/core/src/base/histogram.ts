/** How many values fell into each bucket, by its number. Two of them are added bucket by bucket. */
export type Histogram = Readonly<Record<number, number>>

/** Each bucket ends 19 % above the one before: a percentile is off by 9 % at most. */
const BUCKETS_PER_DOUBLING = 4

/** The bucket of so many milliseconds: 0 below one, and 125 for a month. */
export function bucketOf(ms: number): number {
  return ms < 1 ? 0 : 1 + Math.floor(BUCKETS_PER_DOUBLING * Math.log2(ms))
}

/** The middle of a bucket, in milliseconds. */
function middleOf(bucket: number): number {
  return bucket === 0 ? 0 : 2 ** ((bucket - 0.5) / BUCKETS_PER_DOUBLING)
}

export function addHistograms(a: Histogram, b: Histogram): Histogram {
  const sum: Record<number, number> = { ...a }
  for (const [bucket, count] of Object.entries(b)) sum[Number(bucket)] = (sum[Number(bucket)] ?? 0) + count
  return sum
}

/** Many of them, added up in one row of numbers: a month by the hour is a thousand, which copies would make slow. */
export class HistogramSum {
  readonly #counts: number[] = []
  #total = 0

  add(histogram: Histogram): void {
    const counts = this.#counts
    for (const key in histogram) {
      const bucket = Number(key)
      const count = histogram[bucket] ?? 0
      while (counts.length <= bucket) counts.push(0)
      counts[bucket] = (counts[bucket] ?? 0) + count
      this.#total += count
    }
  }

  addSum(other: HistogramSum): void {
    const [counts, more] = [this.#counts, other.#counts]
    while (counts.length < more.length) counts.push(0)
    for (let bucket = 0; bucket < more.length; bucket++) counts[bucket] = (counts[bucket] ?? 0) + (more[bucket] ?? 0)
    this.#total += other.#total
  }

  /** The values that these shares of all, which grow, are not above; `null` without any. */
  percentiles<const TShares extends readonly number[]>(shares: TShares): { [K in keyof TShares]: number } | null {
    if (this.#total === 0) return null
    let bucket = 0
    let seen = this.#counts[0] ?? 0
    const found = shares.map((share) => {
      while (seen < this.#total * share && bucket < this.#counts.length - 1) seen += this.#counts[++bucket] ?? 0
      return middleOf(bucket)
    })
    return found as { [K in keyof TShares]: number }
  }
}
