import type { CountQuery, RunQuery } from '@coji/durably-core/storage'

const FEW = { limit: 50 } as const

/** What people ask for, with what is rare in it and what is not there. */
export const LISTS: Readonly<Record<string, RunQuery>> = {
  everything: FEW,
  'a tenant': { ...FEW, tenant: 'acme' },
  'a rare tenant': { ...FEW, tenant: 'rare' },
  'no tenant': { ...FEW, tenant: 'none' },
  'a job': { ...FEW, jobNames: ['job'] },
  'a rare job': { ...FEW, jobNames: ['rare'] },
  'a rare job of a tenant that has none': { ...FEW, tenant: 'acme', jobNames: ['rare'] },
  'a job of a tenant': { ...FEW, tenant: 'acme', jobNames: ['job3'] },
  'a label': { ...FEW, labels: { team: 'red' } },
  'a rare label': { ...FEW, labels: { team: 'rare' } },
  'a label of a tenant': { ...FEW, tenant: 'acme', labels: { team: 'red' } },
  'a label that the tenant has not': { ...FEW, tenant: 'rare', labels: { team: 'red' } },
  'a status': { ...FEW, statuses: ['failed'] },
  'a status that none has': { ...FEW, statuses: ['timed_out'] },
  'states of a tenant': { ...FEW, tenant: 'acme', statuses: ['failed', 'timed_out', 'running'] },
  'states of a rare tenant': { ...FEW, tenant: 'rare', statuses: ['failed', 'completed', 'running'] },
  'completed ones of a rare job': { ...FEW, jobNames: ['rare'], statuses: ['completed'] },
  'failed ones of a rare job': { ...FEW, jobNames: ['rare'], statuses: ['failed'] },
  'failed ones of a job of a tenant': { ...FEW, tenant: 'acme', jobNames: ['job3'], statuses: ['failed'] },
  'a page in the middle': { ...FEW, tenant: 'acme', cursor: { createdAt: '2023-11-15T00:00:00.000Z', id: '' } },
  'a time': { ...FEW, createdFrom: '2023-11-14T22:20:00.000Z', createdBefore: '2023-11-14T22:30:00.000Z' },
  'a time of a tenant': { ...FEW, tenant: 'acme', createdBefore: '2023-11-14T22:30:00.000Z' },
  'the beginning of an id': { ...FEW, idPrefix: '010000000000000000000001' },
  'the beginning of an id of a tenant': { ...FEW, tenant: 'acme', idPrefix: '010000000000000000000001' },
  'a code': { ...FEW, errorCode: 'E_OFTEN' },
  'a rare code': { ...FEW, errorCode: 'E_RARE', tenant: 'acme' },
  'those that wait for a signal': { ...FEW, waitsForKinds: ['signal'] },
  'those of a tenant that wait for a signal': { ...FEW, tenant: 'acme', waitsForKinds: ['signal'] },
  'those that wait for a retry': { ...FEW, tenant: 'acme', waitsForRetry: true },
  'parked ones': { ...FEW, parked: true },
  'ids of a tenant': { tenant: 'acme', ids: ['01000000000000000000000007'] },
  'children of a tenant': { tenant: 'acme', parentRunId: '01000000000000000000000007' },
  'holders of a key': { tenant: 'acme', holdingKey: 'key' },
}

/** No index has both a job and the status of its runs: whoever counts them looks at each run. */
const OF_JOB = { upTo: 1000 } as const
const OF_ALL = { upTo: 10_000 } as const

export const COUNTS: Readonly<Record<string, CountQuery>> = {
  everything: OF_ALL,
  'a tenant': { ...OF_ALL, tenant: 'acme' },
  'a rare tenant': { ...OF_ALL, tenant: 'rare' },
  'a job': { ...OF_JOB, jobNames: ['job'] },
  'a rare job': { ...OF_JOB, jobNames: ['rare'] },
  'a job of a tenant': { ...OF_JOB, tenant: 'acme', jobNames: ['job3'] },
}
