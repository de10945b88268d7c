import type { BulkFilter } from '@coji/durably-server/client'
import { ALL, VIEWS, type View } from './views'

/** What the list is asked for: all of it is in the address of the page. */
export interface ListFilter {
  readonly view: View
  readonly since: Since
  readonly jobs: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly idPrefix: string | null
  readonly errorCode: string | null
}

/** How far back the list goes. */
export interface Since {
  readonly key: string
  readonly label: string
  readonly ms: number | null
}

const HOUR_MS = 3_600_000

export const ANY_TIME: Since = { key: '', label: 'Any time', ms: null }
export const SINCES: readonly Since[] = [
  ANY_TIME,
  { key: '1h', label: 'Last hour', ms: HOUR_MS },
  { key: '24h', label: 'Last 24 hours', ms: 24 * HOUR_MS },
  { key: '7d', label: 'Last 7 days', ms: 7 * 24 * HOUR_MS },
  { key: '30d', label: 'Last 30 days', ms: 30 * 24 * HOUR_MS },
]

/** `?view=failed&job=import&label=team:red` */
export function filterOf(search: string): ListFilter {
  const params = new URLSearchParams(search)
  const labels = params.getAll('label').flatMap((text): [string, string][] => {
    const at = text.indexOf(':')
    return at > 0 ? [[text.slice(0, at), text.slice(at + 1)]] : []
  })
  return {
    view: VIEWS.find(({ key }) => key === params.get('view')) ?? ALL,
    since: SINCES.find(({ key }) => key === params.get('since')) ?? ANY_TIME,
    jobs: params.getAll('job').filter((job) => job !== ''),
    labels: Object.fromEntries(labels),
    idPrefix: params.get('id'),
    errorCode: params.get('error'),
  }
}

export function searchOf({ view, since, jobs, labels, idPrefix, errorCode }: ListFilter): string {
  const params = new URLSearchParams()
  if (view !== ALL) params.set('view', view.key)
  if (since !== ANY_TIME) params.set('since', since.key)
  for (const job of jobs) params.append('job', job)
  for (const [name, value] of Object.entries(labels)) params.append('label', `${name}:${value}`)
  if (idPrefix !== null) params.set('id', idPrefix)
  if (errorCode !== null) params.set('error', errorCode)
  const search = params.toString()
  return search === '' ? '' : `?${search}`
}

/** Times are cut to the minute: the same list is asked for again and again. */
const EXACT_TO_MS = 60_000

export function toRunFilter(filter: ListFilter, now: number): BulkFilter {
  const { view, since, jobs, labels, idPrefix, errorCode } = filter
  const from = since.ms === null ? null : Math.floor((now - since.ms) / EXACT_TO_MS) * EXACT_TO_MS
  return {
    ...view.filter,
    ...(from !== null && { createdFrom: new Date(from).toISOString() }),
    ...(jobs.length > 0 && { jobName: jobs }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(idPrefix !== null && { idPrefix }),
    ...(errorCode !== null && { errorCode }),
  }
}

export function isFiltered(filter: ListFilter): boolean {
  return searchOf(filter) !== ''
}

const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/i
/** As the ids of this century begin. */
const ULID_BEGUN = /^01[0-9A-HJKMNP-TV-Z]{4,23}$/i

/** What somebody means who types this into the search. */
export type Wanted =
  | { readonly kind: 'run'; readonly id: string }
  | { readonly kind: 'idPrefix'; readonly idPrefix: string }
  | { readonly kind: 'label'; readonly name: string; readonly value: string }
  | { readonly kind: 'job'; readonly job: string }
  | null

export function wantedBy(text: string): Wanted {
  const trimmed = text.trim()
  if (trimmed === '') return null
  if (ULID.test(trimmed)) return { kind: 'run', id: trimmed.toUpperCase() }
  if (ULID_BEGUN.test(trimmed)) return { kind: 'idPrefix', idPrefix: trimmed.toUpperCase() }
  const label = /^([^=:\s]+)[=:](.*)$/.exec(trimmed)
  if (label?.[1] !== undefined) return { kind: 'label', name: label[1], value: label[2] ?? '' }
  return { kind: 'job', job: trimmed }
}
