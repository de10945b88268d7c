import { HttpProblem } from './problem'
import type { Settings } from './options'

/** A page of another site must not write with the cookies of whoever looks at it. */
export function refuseForeignOrigin(request: Request, { origins }: Pick<Settings, 'origins'>): void {
  const origin = request.headers.get('origin')
  const site = request.headers.get('sec-fetch-site')
  const isOwn = origin === null ? site === null || isOwnSite(site) || site === 'none' : isSameHost(origin, request)
  // A page that sends no referrer, as that of a link, says so of its origin; its browser still knows whose it is.
  const isOwnUnnamed = origin === 'null' && isOwnSite(site)
  if (isOwn || isOwnUnnamed || (origin !== null && origins.includes(origin))) return
  throw new HttpProblem(
    'ORIGIN_REFUSED',
    'Pages of this origin may not write. The option "origins" lists those that may.',
  )
}

function isOwnSite(site: string | null): boolean {
  return site === 'same-origin'
}

/** Of the scheme a proxy leaves nothing. */
function isSameHost(origin: string, { url, headers }: Request): boolean {
  if (!URL.canParse(origin)) return false
  const { host } = new URL(origin)
  return host === (headers.get('host') ?? new URL(url).host)
}
