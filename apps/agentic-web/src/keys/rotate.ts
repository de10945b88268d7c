import type { Database } from '../database/open'
import { placeOfKey } from '../settings/settings'
import { placeOfTokens } from '../oauth/place'

type Opened = Pick<Database, 'db' | 'vault'>

/** Every value that an older key has sealed is sealed with the current one; one that changes meanwhile is new anyway. */
export async function rotateSecrets(database: Opened): Promise<{ readonly settings: number; readonly auth: number }> {
  return { settings: await rotateKeys(database), auth: await rotateTokens(database) }
}

async function rotateKeys({ db, vault }: Opened): Promise<number> {
  const rows = await db.selectFrom('settings').where('api_key', 'is not', null).select(['user_id', 'api_key']).execute()
  let count = 0
  for (const { user_id, api_key } of rows) {
    if (api_key === null || !vault.isOld(api_key)) continue
    const place = placeOfKey(user_id)
    const { numUpdatedRows } = await db
      .updateTable('settings')
      .set({ api_key: vault.seal(vault.open(api_key, place), place) })
      .where('user_id', '=', user_id)
      .where('api_key', '=', api_key)
      .executeTakeFirstOrThrow()
    count += Number(numUpdatedRows)
  }
  return count
}

async function rotateTokens({ db, vault }: Opened): Promise<number> {
  const rows = await db.selectFrom('auth').select(['user_id', 'provider', 'tokens']).execute()
  let count = 0
  for (const { user_id, provider, tokens } of rows) {
    if (!vault.isOld(tokens)) continue
    const place = placeOfTokens(user_id, provider)
    const { numUpdatedRows } = await db
      .updateTable('auth')
      .set({ tokens: vault.seal(vault.open(tokens, place), place) })
      .where('user_id', '=', user_id)
      .where('provider', '=', provider)
      .where('tokens', '=', tokens)
      .executeTakeFirstOrThrow()
    count += Number(numUpdatedRows)
  }
  return count
}
