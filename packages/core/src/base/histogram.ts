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

/** The value that this share of all values is not above; `null` without any. */
export function percentileOf(histogram: Histogram, share: number): number | null {
  const buckets = Object.entries(histogram).map(([bucket, count]) => [Number(bucket), count] as const)
  const wanted = buckets.reduce((sum, [, count]) => sum + count, 0) * share
  let seen = 0
  for (const [bucket, count] of buckets.sort(([a], [b]) => a - b)) {
    seen += count
    if (seen >= wanted) return middleOf(bucket)
  }
  return null
}
