import { HttpProblem } from './problem'
import type { Settings } from './options'

/** A page of another site must not write with the cookies of whoever looks at it. */
export function refuseForeignOrigin(request: Request, { origins }: Pick<Settings, 'origins'>): void {
  const origin = request.headers.get('origin')
  const site = request.headers.get('sec-fetch-site')
  const isOwn =
    origin === null ? site === null || site === 'same-origin' || site === 'none' : isSameHost(origin, request)
  if (isOwn || (origin !== null && origins.includes(origin))) return
  throw new HttpProblem(
    'ORIGIN_REFUSED',
    'Pages of this origin may not write. The option "origins" lists those that may.',
  )
}

/** Of the scheme a proxy leaves nothing. */
function isSameHost(origin: string, { url, headers }: Request): boolean {
  if (!URL.canParse(origin)) return false
  const { host } = new URL(origin)
  return host === (headers.get('host') ?? new URL(url).host)
}
