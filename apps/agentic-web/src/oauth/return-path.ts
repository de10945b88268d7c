const ANY_ORIGIN = 'http://here.invalid'

/** A page of this site to come back to, whatever was asked for: never an address of another one. */
export function returnPathOf(given: string | undefined | null): string {
  if (given === undefined || given === null || !given.startsWith('/') || /[\\\p{Cc}]/u.test(given)) return '/'
  if (!URL.canParse(given, ANY_ORIGIN)) return '/'
  const { origin, pathname, search, hash } = new URL(given, ANY_ORIGIN)
  const isHere = origin === ANY_ORIGIN && !pathname.startsWith('//')
  return isHere ? `${pathname}${search}${hash}` : '/'
}
