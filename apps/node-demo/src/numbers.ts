const COUNT = new Intl.NumberFormat('en')

export function formatCount(count: number): string {
  return COUNT.format(count)
}

export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

export function formatMegabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}
