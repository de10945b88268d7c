import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { ApiConfig } from '../config'
import type { Database } from '../database/open'
import { RequestError } from './problem'

/** How often something may be asked for, counted in the database: it is the same for all instances together. */
export interface Limits {
  /** New runs of a user. */
  run(userId: string): Promise<void>
  /** Sign-ins, and visits to providers, from an address. */
  signIn(address: string): Promise<void>
}

const MINUTE_S = 60
const SIGN_INS_PER_MINUTE = 30

export function createLimits(
  { pool }: Pick<Database, 'pool'>,
  { runsPerMinute }: Pick<ApiConfig, 'runsPerMinute'>,
): Limits {
  const runs = createLimiter(pool, { keyPrefix: 'runs', points: runsPerMinute })
  const signIns = createLimiter(pool, { keyPrefix: 'sign-ins', points: SIGN_INS_PER_MINUTE })
  return { run: (userId) => take(runs, userId), signIn: (address) => take(signIns, address) }
}

interface Limit {
  readonly keyPrefix: string
  readonly points: number
}

function createLimiter(storeClient: Database['pool'], limit: Limit): RateLimiterPostgres {
  const table = { tableName: 'rate_limits', tableCreated: true, clearExpiredByTimeout: false }
  return new RateLimiterPostgres({ ...limit, ...table, storeClient, duration: MINUTE_S })
}

async function take(limiter: RateLimiterPostgres, key: string): Promise<void> {
  try {
    await limiter.consume(key)
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal
    const retryAfterSeconds = Math.ceil(refusal.msBeforeNext / 1000)
    throw new RequestError('TOO_MANY', `Too many requests: try again in ${retryAfterSeconds} s.`, { retryAfterSeconds })
  }
}
