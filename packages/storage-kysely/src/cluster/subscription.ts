import type { Subscription } from '@coji/durably-core/storage'
import type { Row } from '../statement'

export function toSubscription(row: Row): Subscription {
  return { jobName: String(row['job_name']), type: String(row['type']), definition: String(row['definition']) }
}
