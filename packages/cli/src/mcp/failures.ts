import type { Run, RunFilter, SqlDurably } from '@coji/durably'

/** Runs that failed in the same way. */
export interface FailureGroup {
  readonly jobName: string
  readonly stepName: string | null
  readonly code: string | null
  /** Of the newest; what changes from run to run is not looked at. */
  readonly error: string
  readonly runs: number
  readonly newest: string
  readonly oldest: string
  readonly examples: readonly string[]
  readonly stack: string | null
}

/** Enough to see what is going on, and read within a second. */
const LOOKED_AT = 1000
const PAGE = 250
const EXAMPLES = 3

/** The newest failures, put together by job, step and error, the most frequent first. */
export async function groupFailures({ getRuns }: Pick<SqlDurably, 'getRuns'>, filter: RunFilter) {
  const groups = new Map<string, FailureGroup>()
  let looked = 0
  let last: Run | undefined
  for (;;) {
    const cursor = last === undefined ? {} : { cursor: { createdAt: last.createdAt, id: last.id } }
    const page = await getRuns({ status: ['failed', 'timed_out'], ...filter, ...cursor, limit: PAGE })
    for (const run of page) add(groups, run)
    looked += page.length
    last = page.at(-1)
    if (page.length < PAGE || looked >= LOOKED_AT) break
  }
  const found = [...groups.values()].sort((one, other) => other.runs - one.runs)
  return { groups: found, lookedAt: looked, isMore: looked >= LOOKED_AT }
}

function add(groups: Map<string, FailureGroup>, run: Run): void {
  const { id, jobName, error, errorDetail, createdAt } = run
  const stepName = errorDetail?.stepName ?? null
  const code = errorDetail?.code ?? null
  const key = JSON.stringify([jobName, stepName, code, withoutParticulars(error ?? '')])
  const group = groups.get(key)
  groups.set(
    key,
    group === undefined
      ? {
          ...{ jobName, stepName, code, error: error ?? '', runs: 1, newest: createdAt, oldest: createdAt },
          ...{ examples: [id], stack: errorDetail?.stack ?? null },
        }
      : {
          ...group,
          runs: group.runs + 1,
          oldest: createdAt,
          examples: group.examples.length < EXAMPLES ? [...group.examples, id] : group.examples,
        },
  )
}

/** Ids, numbers, and what stands in quotes. */
function withoutParticulars(message: string): string {
  return message
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, '…')
    .replace(/\b(?=\w*\d)[\w-]{8,}\b/g, '…')
    .replace(/\d+/g, '…')
}
