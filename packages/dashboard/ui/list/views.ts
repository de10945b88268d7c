import type { RunFilter, StatusCounts } from '@coji/durably-core'
import { formatCount } from '../format'

/** One way to look at the list. */
export interface View {
  readonly key: string
  readonly label: string
  readonly filter: Pick<RunFilter, 'status' | 'waitsFor'>
  /** Where there is something that counts them. */
  readonly count?: (counts: StatusCounts) => number
}

/** Nobody needs to know more exactly, and to count a million takes its time. */
export const COUNTED_UP_TO = 10_000

/** How far it was counted, the server says. */
export function countText(count: number, upTo: number): string {
  return count >= upTo ? `${formatCount(upTo)}+` : formatCount(count)
}

export const ALL: View = {
  key: 'all',
  label: 'All',
  filter: {},
  count: ({ waitsForRetry: _retrying, parked: _parked, ...byStatus }) =>
    Object.values(byStatus).reduce((sum, count) => sum + count, 0),
}

export const VIEWS: readonly View[] = [
  ALL,
  {
    key: 'running',
    label: 'Running',
    filter: { status: ['running', 'assigned'] },
    count: ({ running, assigned }) => running + assigned,
  },
  {
    key: 'pending',
    label: 'Pending',
    filter: { status: ['pending', 'orphaned'] },
    count: ({ pending, orphaned }) => pending + orphaned,
  },
  { key: 'for-people', label: 'For people', filter: { waitsFor: 'signal' } },
  { key: 'retrying', label: 'Retrying', filter: { waitsFor: 'retry' }, count: ({ waitsForRetry }) => waitsForRetry },
  { key: 'parked', label: 'Parked', filter: { waitsFor: 'unpark' }, count: ({ parked }) => parked },
  { key: 'completed', label: 'Completed', filter: { status: 'completed' }, count: ({ completed }) => completed },
  {
    key: 'failed',
    label: 'Failed',
    filter: { status: ['failed', 'timed_out'] },
    count: (counts) => counts.failed + counts.timed_out,
  },
  { key: 'cancelled', label: 'Cancelled', filter: { status: 'cancelled' }, count: ({ cancelled }) => cancelled },
]
