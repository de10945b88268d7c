import { expect, it } from 'vitest'
import { filterOf, isFiltered, searchOf, toRunFilter, wantedBy } from './list-filter'

it.each([
  '',
  '?view=failed',
  '?view=for-people&since=24h&id=01JQZ5&error=card_declined',
  '?view=parked&job=a&job=b',
  '?job=a+b&label=team%3Ared&label=url%3Ahttps%3A%2F%2Fx',
])('keeps what "%s" says', (search) => {
  expect(searchOf(filterOf(search))).toBe(search)
})

it('overlooks what makes no sense', () => {
  const filter = filterOf('?view=nonsense&job=&label=nothing&other=1')
  expect(isFiltered(filter)).toBe(false)
  expect(toRunFilter(filter, 0)).toEqual({})
})

it('asks for what the address says', () => {
  expect(toRunFilter(filterOf('?view=failed&job=import&label=team:red:dark&error=E1'), 0)).toEqual({
    status: ['failed', 'timed_out'],
    jobName: ['import'],
    labels: { team: 'red:dark' },
    errorCode: 'E1',
  })
  expect(toRunFilter(filterOf('?since=1h'), Date.UTC(2026, 0, 1, 12, 30, 59))).toEqual({
    createdFrom: '2026-01-01T11:30:00.000Z',
  })
})

it('understands what is typed', () => {
  expect(wantedBy('  ')).toBe(null)
  expect(wantedBy(' 01jqz5k3v9n8m7p6r5t4s3w2x1 ')).toEqual({ kind: 'run', id: '01JQZ5K3V9N8M7P6R5T4S3W2X1' })
  expect(wantedBy('01jqz5k3')).toEqual({ kind: 'idPrefix', idPrefix: '01JQZ5K3' })
  expect(wantedBy('team=red blue')).toEqual({ kind: 'label', name: 'team', value: 'red blue' })
  expect(wantedBy('team:red')).toEqual({ kind: 'label', name: 'team', value: 'red' })
  expect(wantedBy('import-orders')).toEqual({ kind: 'job', job: 'import-orders' })
})
