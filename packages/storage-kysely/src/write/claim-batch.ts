import { type ClaimParams, isSuspect, type JobLimits, type RunRecord } from '@coji/durably-core/storage'
import { inOrder, type Take } from './claim-parts'
import { KEYS_AT_ONCE, keylessStatement, lockStatement, takeStatement } from './claim-statements'
import { type Executor, isBusy, isConstraintError, pause } from '../connection'
import type { Rows } from '../dialect'
import { type KeyWalk, KeyWalks } from './key-walks'
import { limitValues, NO_LIMITS } from './limits'
import { type SqlContext, toRun } from '../statement'
import type { Watchers } from '../watch'

/** Two workers can want the same slot at the same moment; the unique index lets one of them have it. */
const MAX_MISSES = 5
const LONGEST_PAUSE_MS = 20

/** After so many looks that found nothing a claim ends; the next goes on from there. */
const LOOKS_OF_A_CLAIM = 4

/**
 * For Postgres: one statement claims as many runs as are wanted, and passes over what others are claiming just now. Another one
 * comes first, and is enough, where no run that is due has a key.
 */
export function createClaimBatch(context: SqlContext, watchers: Watchers): Take {
  const ask = createAsking(context)
  const walks = new KeyWalks(watchers)

  async function takeSome(executor: Executor, asked: Asked, look: Look) {
    const { walk } = look
    const rows = await ask(executor, asked, look)
    const [first = {}] = rows
    const isLast = Number(first['walked']) < KEYS_AT_ONCE
    if (first['is_blocked'] !== true) walk.end()
    else walk.goOn(isLast ? null : { tenant: String(first['last_tenant']), key: String(first['last_key']) })
    const runs = rows.filter((row) => row['id'] !== null).map(toRun)
    if (runs.length > 0) walk.beginAnew()
    return {
      runs,
      isBlocked: first['is_blocked'] === true,
      isContended: first['is_contended'] === true,
      hasPassedOver: first['has_passed_over'] === true,
    }
  }

  return async function take(executor, params, limits) {
    const claimed: RunRecord[] = []
    const walk = walks.of(params)
    walk.begin()
    let [misses, looks, isBlocked] = [0, 0, false]
    while (claimed.length < params.limit) {
      try {
        const taken = await takeSome(executor, { params, limits }, { walk, claimed, looksAhead: looks === 0 })
        isBlocked = taken.isBlocked
        claimed.push(...taken.runs)
        // They stood in the way of others, and do not any more: their key is taken now, or the one suspect.
        if (taken.runs.length > 0 && taken.hasPassedOver) continue
        if (!taken.isContended) {
          looks += 1
          // Who waits for what was found need not wait for what may come behind it.
          if (!isBlocked || walk.isOver || claimed.length > 0 || looks === LOOKS_OF_A_CLAIM) break
          continue
        }
      } catch (error) {
        if (limits !== null && isBusy(error)) return { runs: claimed.sort(inOrder), isHeldUp: true }
        if (!isConstraintError(error) || misses === MAX_MISSES) throw error
      }
      if (misses === MAX_MISSES) break
      misses += 1
      if (misses > 1) await pause(Math.random() * LONGEST_PAUSE_MS)
    }
    // Nobody else: workers that tell each other would go on for ever.
    const { workerId } = params
    if (isBlocked && !walk.isOver && claimed.length < params.limit) watchers.tell({ kind: 'runs', workerId })
    return { runs: claimed.sort(inOrder), isHeldUp: false }
  }
}

/** Where runs with keys come one by one, each claim would else take two statements: many a look between them finds none. */
const KEYS_FIRST = 20

/** Sends what a claim asks. */
function createAsking(context: SqlContext) {
  const keyless = keylessStatement(context)
  const free = takeStatement(context, false)
  const limited = takeStatement(context, true)
  const lock = lockStatement(context)
  /** So many claims are still to begin with the keys. */
  let keysFirst = 0

  return async (executor: Executor, { params, limits }: Asked, { walk, claimed, looksAhead }: Look): Promise<Rows> => {
    const { workerId, claimToken, leaseMs, jobs, events } = params
    const values = {
      ...{ workerId, claimToken, leaseMs, limit: params.limit - claimed.length },
      ...limitValues(limits ?? NO_LIMITS),
      ...{ fromTenant: walk.place.tenant, fromKey: walk.place.key, looksAhead: looksAhead ? 1 : 0 },
      jobs: JSON.stringify(jobs),
      events: JSON.stringify(events.map(({ type, payload }, index) => [index + 1, type, payload])),
      eventCount: events.length,
      holdsSuspect: params.holdsSuspect || claimed.some(isSuspect) ? 1 : 0,
    }
    if (limits !== null) {
      const [, rows] = await executor.impatient.write([lock.bind({ jobName: limits.jobName }), limited.bind(values)])
      return answered(rows)
    }
    if (keysFirst === 0) {
      const [rows] = await executor.write([keyless.bind(values)])
      if (answered(rows)[0]?.['has_keys'] !== true) return answered(rows)
    }
    const [rows] = await executor.write([free.bind(values)])
    const hasKeys = answered(rows)[0]?.['has_keys'] === true
    keysFirst = hasKeys ? KEYS_FIRST : Math.max(0, keysFirst - 1)
    return answered(rows)
  }
}

function answered(rows: Rows | undefined): Rows {
  if (rows === undefined) throw new Error('A claim has no answer.')
  return rows
}

interface Look {
  readonly walk: KeyWalk
  readonly claimed: readonly RunRecord[]
  readonly looksAhead: boolean
}

interface Asked {
  readonly params: ClaimParams
  readonly limits: JobLimits | null
}
