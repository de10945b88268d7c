import { setTimeout as sleep } from 'node:timers/promises'
import { PermanentError } from '@coji/durably'
import { sql } from 'kysely'
import * as client from 'openid-client'
import type { Connection } from '../contract'
import type { Database } from '../database/open'
import { placeOfTokens } from './place'
import type { Provider } from './provider'

const PROVIDER = 'openai'
/** What is about to run out is renewed before. */
const AHEAD_MS = 60_000
/** Who renews has so long; then somebody else does. */
const RENEWAL_SECONDS = 30
const LOOK_EVERY_MS = 100

type Opened = Pick<Database, 'db' | 'vault'>

interface Tokens {
  readonly access: string
  readonly refresh: string | null
}

type Grant = client.TokenEndpointResponse & client.TokenEndpointResponseHelpers

/** Keeps what a provider has granted. A renewal that was under way for what was there before is not kept then. */
export async function keepConnection({ db, vault }: Opened, { userId, issuer, grant }: KeptGrant): Promise<void> {
  const values = { issuer, tokens: sealed(vault, userId, tokensOf(grant, null)), expires_at: expiryOf(grant) }
  await db
    .insertInto('auth')
    .values({ user_id: userId, provider: PROVIDER, generation: 1, ...values })
    .onConflict((conflict) =>
      conflict.columns(['user_id', 'provider']).doUpdateSet({
        ...values,
        generation: sql`auth.generation + 1`,
        refreshing_until: null,
        trouble: null,
        created_at: sql`now()`,
      }),
    )
    .execute()
}

interface KeptGrant {
  readonly userId: string
  readonly issuer: string
  readonly grant: Grant
}

function tokensOf({ access_token, refresh_token }: Grant, before: string | null): Tokens {
  return { access: access_token, refresh: refresh_token ?? before }
}

function expiryOf(grant: Grant): Date | null {
  const seconds = grant.expiresIn()
  return seconds === undefined ? null : new Date(Date.now() + seconds * 1000)
}

function sealed(vault: Opened['vault'], userId: string, tokens: Tokens): string {
  return vault.seal(JSON.stringify(tokens), placeOfTokens(userId, PROVIDER))
}

function rowOf(db: Opened['db'], userId: string) {
  return db
    .selectFrom('auth')
    .where('user_id', '=', userId)
    .where('provider', '=', PROVIDER)
    .selectAll()
    .executeTakeFirst()
}

export async function showConnection(db: Opened['db'], userId: string, isAvailable: boolean): Promise<Connection> {
  const row = await rowOf(db, userId)
  return {
    isAvailable,
    isConnected: row !== undefined && row.trouble === null,
    connected_at: row?.created_at.toISOString() ?? null,
    expires_at: row?.expires_at?.toISOString() ?? null,
    trouble: row?.trouble ?? null,
  }
}

/** Forgets it here at once, and tells the provider as well as may be. */
export async function removeConnection(
  { db, vault }: Opened,
  userId: string,
  provider: Provider | null,
): Promise<void> {
  const row = await db
    .deleteFrom('auth')
    .where('user_id', '=', userId)
    .where('provider', '=', PROVIDER)
    .returning('tokens')
    .executeTakeFirst()
  if (row === undefined || provider === null) return
  const { access, refresh } = opened(vault, userId, row.tokens)
  const configuration = await provider.configuration().catch(() => null)
  if (configuration?.serverMetadata().revocation_endpoint === undefined) return
  await client.tokenRevocation(configuration, refresh ?? access).catch(() => {})
}

function opened(vault: Opened['vault'], userId: string, tokens: string): Tokens {
  return JSON.parse(vault.open(tokens, placeOfTokens(userId, PROVIDER)))
}

type Row = NonNullable<Awaited<ReturnType<typeof rowOf>>>

/**
 * The token of a user, renewed where it has to be; `null` when there is no connection. Of all workers that need it at the same
 * moment one asks the provider, since many providers take a second use of a refresh token for a theft.
 */
export async function accessToken(
  database: Opened,
  { userId, provider, signal }: { readonly userId: string; readonly provider: Provider; readonly signal?: AbortSignal },
): Promise<string | null> {
  for (;;) {
    const row = await rowOf(database.db, userId)
    if (row === undefined) return null
    if (row.trouble !== null) throw new PermanentError(row.trouble)
    const tokens = opened(database.vault, userId, row.tokens)
    if (row.expires_at === null || row.expires_at.getTime() > Date.now() + AHEAD_MS) return tokens.access
    if (tokens.refresh === null) return expired(database, row)
    if (await mayRenew(database.db, row)) await renew(database, { row, refresh: tokens.refresh, provider })
    else await sleep(LOOK_EVERY_MS, undefined, { ...(signal && { signal }) })
  }
}

async function mayRenew(db: Opened['db'], row: Row): Promise<boolean> {
  const { numUpdatedRows } = await ofGeneration(db, row)
    .where(({ eb, or }) => or([eb('refreshing_until', 'is', null), eb('refreshing_until', '<', sql<Date>`now()`)]))
    .set({ refreshing_until: sql`now() + make_interval(secs => ${RENEWAL_SECONDS})` })
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

function ofGeneration(db: Opened['db'], { user_id, generation }: Row) {
  return db
    .updateTable('auth')
    .where('user_id', '=', user_id)
    .where('provider', '=', PROVIDER)
    .where('generation', '=', generation)
}

interface Renewal {
  readonly row: Row
  readonly refresh: string
  readonly provider: Provider
}

/** What comes after the connection was removed, or made anew, is thrown away: the generation is another one. */
async function renew({ db, vault }: Opened, { row, refresh, provider }: Renewal): Promise<void> {
  const { user_id, generation } = row
  try {
    const grant = await client.refreshTokenGrant(await provider.configuration(), refresh)
    await ofGeneration(db, row)
      .set({
        tokens: sealed(vault, user_id, tokensOf(grant, refresh)),
        expires_at: expiryOf(grant),
        generation: generation + 1,
        refreshing_until: null,
      })
      .execute()
  } catch (error) {
    const isOver = error instanceof client.ResponseBodyError && error.error === 'invalid_grant'
    const trouble = isOver ? 'The provider has ended this connection. Connect again.' : null
    // An answer that was lost is no end: what is there is kept, and tried again.
    await ofGeneration(db, row).set({ refreshing_until: null, trouble }).execute()
    if (!isOver) throw error
  }
}

async function expired({ db }: Opened, row: Row): Promise<never> {
  const trouble = 'This connection has expired. Connect again.'
  await ofGeneration(db, row).set({ trouble }).execute()
  throw new PermanentError(trouble)
}
