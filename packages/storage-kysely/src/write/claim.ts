import type { ClaimParams, JobLimits, LimitedClaim, LimitedClaimParams, RunRecord } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { createClaimBatch } from './claim-batch'
import { createClaimOneByOne } from './claim-one-by-one'
import { inOrder } from './claim-parts'
import type { Executor } from '../connection'
import type { Limits } from './limits'
import { runColumns, runsBy, type SqlContext, statement, toRun } from '../statement'
import type { Watchers } from '../watch'

/** Who holds up a claim does so for a moment. */
const HELD_UP_MS = 50

export type Claims = ReturnType<typeof createClaim>

/** The watchers hear when a claim has not looked everywhere. */
export function createClaim(context: SqlContext, { load }: Limits, watchers: Watchers) {
  const create = context.dialect.hasWritingQueries ? createClaimBatch : createClaimOneByOne
  const take = create(context, watchers)
  const find = statement<'claimToken'>(
    context,
    (p) => sql`select ${runColumns(context)} from ${runsBy(context, 'running')}
      where r.status = 'running' and r.claim_token = ${p('claimToken')}`,
  )

  return {
    async claim(executor: Executor, params: ClaimParams): Promise<readonly RunRecord[]> {
      if (params.repeat !== true) return (await take(executor, params, null)).runs
      const rows = await executor.read(find.bind({ claimToken: params.claimToken }))
      return rows.map(toRun).sort(inOrder)
    },
    async claimWithin(executor: Executor, params: LimitedClaimParams, limits: JobLimits): Promise<LimitedClaim> {
      const { runs, isHeldUp } = await take(executor, { ...params, jobs: [limits.jobName] }, limits)
      if (isHeldUp) return { runs, opensInMs: HELD_UP_MS }
      if (limits.rateLimit === null || runs.length === params.limit) return { runs, opensInMs: 0 }
      return { runs, opensInMs: (await load(executor, limits)).opensInMs }
    },
  }
}
