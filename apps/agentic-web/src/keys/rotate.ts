import { sql } from 'kysely'
import type { Database } from '../database/open'
import { placeOfTokens, placeOfVerifier } from '../oauth/place'
import type { Place } from '../secrets/vault'
import { placeOfKey } from '../settings/settings'

type Opened = Pick<Database, 'db' | 'vault'>

/** How many values of one kind were sealed anew, and how many no key opens, which stay as they are. */
interface Count {
  readonly sealed: number
  readonly unreadable: number
}

interface Rotated {
  readonly settings: Count
  readonly auth: Count
  readonly visits: Count
}

/** Every value that an older key has sealed is sealed with the current one; one that changes meanwhile is new anyway. */
export async function rotateSecrets(database: Opened): Promise<Rotated> {
  return {
    settings: await rotateKeys(database),
    auth: await rotateTokens(database),
    visits: await rotateVerifiers(database),
  }
}

interface Sealed {
  readonly value: string
  readonly place: Place
  /** Puts it where the value was, unless there is another one by now. */
  replace(value: string): PromiseLike<{ readonly numUpdatedRows: bigint }>
}

async function resealAll({ vault }: Opened, all: readonly Sealed[]): Promise<Count> {
  const count = { sealed: 0, unreadable: 0 }
  for (const { value, place, replace } of all.filter((each) => vault.isOld(each.value))) {
    const text = openedOrNull(vault, { value, place })
    if (text === null) count.unreadable += 1
    else count.sealed += Number((await replace(vault.seal(text, place))).numUpdatedRows)
  }
  return count
}

function openedOrNull(vault: Opened['vault'], { value, place }: Pick<Sealed, 'value' | 'place'>): string | null {
  try {
    return vault.open(value, place)
  } catch {
    return null
  }
}

async function rotateKeys(opened: Opened): Promise<Count> {
  const { db } = opened
  const rows = await db.selectFrom('settings').where('api_key', 'is not', null).select(['user_id', 'api_key']).execute()
  const sealed = rows.map(({ user_id, api_key }): Sealed => {
    const row = db.updateTable('settings').where('user_id', '=', user_id).where('api_key', '=', api_key)
    return {
      value: api_key ?? '',
      place: placeOfKey(user_id),
      replace: (value) => row.set({ api_key: value }).executeTakeFirstOrThrow(),
    }
  })
  return resealAll(opened, sealed)
}

async function rotateTokens(opened: Opened): Promise<Count> {
  const { db } = opened
  const rows = await db.selectFrom('auth').select(['user_id', 'provider', 'tokens']).execute()
  const sealed = rows.map(({ user_id, provider, tokens }): Sealed => {
    const own = db.updateTable('auth').where('user_id', '=', user_id).where('provider', '=', provider)
    return {
      value: tokens,
      place: placeOfTokens(user_id, provider),
      replace: (value) => own.where('tokens', '=', tokens).set({ tokens: value }).executeTakeFirstOrThrow(),
    }
  })
  return resealAll(opened, sealed)
}

/** Of who is at a provider just now, and comes back when the old key is gone. */
async function rotateVerifiers(opened: Opened): Promise<Count> {
  const { db } = opened
  const visits = db.selectFrom('oauth_state').where('expires_at', '>', sql<Date>`now()`)
  const sealed = (await visits.select(['state_hash', 'verifier']).execute()).map(({ state_hash, verifier }): Sealed => {
    const row = db.updateTable('oauth_state').where('state_hash', '=', state_hash)
    return {
      value: verifier,
      place: placeOfVerifier(state_hash),
      replace: (value) => row.set({ verifier: value }).executeTakeFirstOrThrow(),
    }
  })
  return resealAll(opened, sealed)
}
