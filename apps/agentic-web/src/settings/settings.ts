import type { Settings, SettingsBody } from '../contract'
import type { Database } from '../database/open'
import type { Place } from '../secrets/vault'

const PRESET: Settings = { provider: 'demo', base_url: null, model: 'demo', reasoning: 'none', has_api_key: false }

type Opened = Pick<Database, 'db' | 'vault'>

/** What a user has chosen, and the key for it, which leaves the process in requests to the model only. */
export async function readSettings({ db, vault }: Opened, userId: string) {
  const row = await db.selectFrom('settings').where('user_id', '=', userId).selectAll().executeTakeFirst()
  if (row === undefined) return { settings: PRESET, apiKey: null }
  const apiKey = row.api_key === null ? null : vault.open(row.api_key, placeOfKey(userId))
  const settings = {
    provider: row.provider,
    base_url: row.base_url,
    model: row.model,
    reasoning: row.reasoning,
    has_api_key: apiKey !== null,
  } as Settings
  return { settings, apiKey }
}

export async function writeSettings({ db, vault }: Opened, userId: string, body: SettingsBody): Promise<void> {
  const { api_key, ...chosen } = body
  const sealed = api_key == null ? null : vault.seal(api_key, placeOfKey(userId))
  const { settings } = await readSettings({ db, vault }, userId)
  // A key is for the server that it was given for.
  const isKept = api_key === undefined && settings.base_url === chosen.base_url
  const key = isKept ? {} : { api_key: sealed }
  const values = { ...chosen, ...key, updated_at: new Date() }
  await db
    .insertInto('settings')
    .values({ api_key: null, ...values, user_id: userId })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(values))
    .execute()
}

export function placeOfKey(userId: string): Place {
  return { table: 'settings', column: 'api_key', row: userId }
}

/** A model is asked by a worker, which may see what its user may not: only hosts that the operator has named. */
export function isModelHost(baseUrl: string, allowed: readonly string[]): boolean {
  const { host, hostname, username, password } = new URL(baseUrl)
  return username === '' && password === '' && (allowed.includes(host) || allowed.includes(hostname))
}
