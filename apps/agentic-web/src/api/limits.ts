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

export async function createLimits(
  { pool }: Pick<Database, 'pool'>,
  { runsPerMinute }: Pick<ApiConfig, 'runsPerMinute'>,
): Promise<Limits> {
  const [runs, signIns] = await Promise.all([
    openLimiter(pool, { keyPrefix: 'runs', points: runsPerMinute }),
    openLimiter(pool, { keyPrefix: 'sign-ins', points: SIGN_INS_PER_MINUTE }),
  ])
  return { run: (userId) => take(runs, userId), signIn: (address) => take(signIns, address) }
}

interface Limit {
  readonly keyPrefix: string
  readonly points: number
}

function openLimiter(storeClient: Database['pool'], limit: Limit): Promise<RateLimiterPostgres> {
  return new Promise((resolve, reject) => {
    const options = {
      ...limit,
      storeClient,
      duration: MINUTE_S,
      tableName: 'rate_limits',
      clearExpiredByTimeout: false,
    }
    const limiter: RateLimiterPostgres = new RateLimiterPostgres(options, (error) => {
      if (error === undefined || error === null) resolve(limiter)
      else reject(error)
    })
  })
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
