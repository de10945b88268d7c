/** The first place in which they differ decides. */
export function isBefore(a: readonly string[], b: readonly string[]): boolean {
  const place = a.findIndex((each, index) => each !== b[index])
  return place !== -1 && (a[place] ?? '') < (b[place] ?? '')
}
