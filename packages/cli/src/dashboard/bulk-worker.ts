import type { SqlDurably } from '@coji/durably'
import { BULK_JOB, type DurablyHandler } from '@coji/durably-server'

/**
 * A bulk action is a run, and somebody has to execute it. The instance here knows no other job, so its worker takes nothing
 * else; it works from the first bulk action on, or to end those that were left.
 */
export async function withBulkWorker(durably: SqlDurably, api: DurablyHandler): Promise<DurablyHandler> {
  const left = await durably.getRuns({ jobName: BULK_JOB, status: ['pending', 'running'], limit: 1 })
  if (left.length > 0) durably.start()
  return async (request) => {
    const isBulk = request.method === 'POST' && new URL(request.url).pathname === '/bulk'
    const response = await api(request)
    if (isBulk && response.ok) durably.start()
    return response
  }
}
