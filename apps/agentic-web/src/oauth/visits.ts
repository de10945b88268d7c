import { sql } from 'kysely'
import * as client from 'openid-client'
import type { Database } from '../database/open'
import { hashOf } from '../secrets/tokens'
import { placeOfVerifier } from './place'
import type { Provider, Purpose } from './provider'

/** Whoever takes longer begins again. */
const VISIT_MINUTES = 10

interface NewVisit {
  readonly provider: Provider
  readonly purpose: Purpose
  readonly redirectUri: string
  /** What the browser has that began it, and that has to come back. */
  readonly browserToken: string
  readonly userId: string | null
  readonly returnPath: string
}

type Opened = Pick<Database, 'db' | 'vault'>

/** Begins a visit to a provider: everything that its end has to know is in the database. Gives the address to go to. */
export async function beginVisit({ db, vault }: Opened, visit: NewVisit): Promise<URL> {
  const { provider, redirectUri: redirect_uri } = visit
  const configuration = await provider.configuration()
  const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()]
  const state_hash = hashOf(state)
  await db
    .insertInto('oauth_state')
    .values({
      ...{ state_hash, redirect_uri, nonce },
      purpose: visit.purpose,
      issuer: provider.issuer,
      browser_hash: hashOf(visit.browserToken),
      user_id: visit.userId,
      verifier: vault.seal(verifier, placeOfVerifier(state_hash)),
      return_to: visit.returnPath,
      expires_at: sql<Date>`now() + make_interval(mins => ${VISIT_MINUTES})`,
    })
    .execute()
  return client.buildAuthorizationUrl(configuration, {
    ...{ redirect_uri, state, nonce },
    scope: provider.scope,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    // Without it some providers give no refresh token a second time.
    ...(visit.purpose === 'connect' && { prompt: 'consent' }),
  })
}

/** What came back in a browser. */
interface Return {
  readonly state: string
  readonly provider: Provider
  readonly purpose: Purpose
  readonly redirectUri: string
  readonly browserToken: string
}

/** What is known of a visit that came to its end. */
export interface Visit {
  readonly userId: string | null
  readonly returnPath: string
  readonly nonce: string
  /** Throws where somebody has put the one of another visit. */
  verifier(): string
}

/**
 * Takes a visit that this browser began, here and for this; `null` when there is none, or it is too late. It is gone afterwards: of
 * any number that come with one state, at any number of instances, one gets it.
 */
export async function takeVisit({ db, vault }: Opened, given: Return): Promise<Visit | null> {
  const state_hash = hashOf(given.state)
  const found = await db
    .deleteFrom('oauth_state')
    .where('state_hash', '=', state_hash)
    .where('purpose', '=', given.purpose)
    .where('issuer', '=', given.provider.issuer)
    .where('redirect_uri', '=', given.redirectUri)
    .where('browser_hash', '=', hashOf(given.browserToken))
    .where('expires_at', '>', sql<Date>`now()`)
    .returning(['user_id', 'return_to', 'verifier', 'nonce'])
    .executeTakeFirst()
  if (found === undefined) return null
  return {
    userId: found.user_id,
    returnPath: found.return_to,
    nonce: found.nonce,
    verifier: () => vault.open(found.verifier, placeOfVerifier(state_hash)),
  }
}
