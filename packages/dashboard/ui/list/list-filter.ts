import type { RunListFilter } from '@coji/durably-react'
import { ALL, VIEWS, type View } from './views'

/** What the list is asked for: all of it is in the address of the page. */
export interface ListFilter {
  readonly view: View
  readonly jobs: readonly string[]
  readonly labels: Readonly<Record<string, string>>
}

/** `?view=failed&job=import&label=team:red` */
export function filterOf(search: string): ListFilter {
  const params = new URLSearchParams(search)
  const labels = params.getAll('label').flatMap((text): [string, string][] => {
    const at = text.indexOf(':')
    return at > 0 ? [[text.slice(0, at), text.slice(at + 1)]] : []
  })
  return {
    view: VIEWS.find(({ key }) => key === params.get('view')) ?? ALL,
    jobs: params.getAll('job').filter((job) => job !== ''),
    labels: Object.fromEntries(labels),
  }
}

export function searchOf({ view, jobs, labels }: ListFilter): string {
  const params = new URLSearchParams()
  if (view !== ALL) params.set('view', view.key)
  for (const job of jobs) params.append('job', job)
  for (const [name, value] of Object.entries(labels)) params.append('label', `${name}:${value}`)
  const search = params.toString()
  return search === '' ? '' : `?${search}`
}

export function toRunFilter({ view, jobs, labels }: ListFilter): RunListFilter {
  return {
    ...view.filter,
    ...(jobs.length > 0 && { jobName: jobs }),
    ...(Object.keys(labels).length > 0 && { labels }),
  }
}

export function isFiltered({ view, jobs, labels }: ListFilter): boolean {
  return view !== ALL || jobs.length > 0 || Object.keys(labels).length > 0
}

const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/i

/** What somebody means who types this into the search. */
export type Wanted =
  | { readonly kind: 'run'; readonly id: string }
  | { readonly kind: 'label'; readonly name: string; readonly value: string }
  | { readonly kind: 'job'; readonly job: string }
  | null

export function wantedBy(text: string): Wanted {
  const trimmed = text.trim()
  if (trimmed === '') return null
  if (ULID.test(trimmed)) return { kind: 'run', id: trimmed.toUpperCase() }
  const label = /^([^=:\s]+)[=:](.*)$/.exec(trimmed)
  if (label?.[1] !== undefined) return { kind: 'label', name: label[1], value: label[2] ?? '' }
  return { kind: 'job', job: trimmed }
}
