import { expect } from 'vitest'
import { readApiConfig } from '../src/config'
import { openDatabase } from '../src/database/open'
import { rotateSecrets } from '../src/keys/rotate'
import { accessToken } from '../src/oauth/connection'
import { placeOfTokens } from '../src/oauth/place'
import { placeOfKey } from '../src/settings/settings'
import type { Browser } from './deployment'
import { wayBack } from './issuer'
import { type Check, expectOver } from './oauth-case'
import { ADA, come, connectionOf, type OAuthSite, refused, stateOf } from './oauth-site'

export const refreshedByMany: Check = async (site) => {
  await site.connected()
  const other = await openDatabase(readApiConfig(site.deployment.env))
  await site.outdated()
  const { state } = site.issuers.connect
  const before = state.tokenRequests
  const instances = [
    { database: site.database, provider: site.provider() },
    { database: other, provider: site.provider() },
  ]
  const tokens = await Promise.all(
    instances.flatMap(({ database, provider }) => {
      return Array.from({ length: 20 }, () => accessToken(database, { userId: ADA, provider }))
    }),
  )
  await other.close()
  expect(tokens).toHaveLength(40)
  expect(new Set(tokens).size).toBe(1)
  expect(state.tokenRequests).toBe(before + 1)
  expect((await site.stored())?.generation).toBe(2)
}

/** What is known is kept; the provider takes a second use of it for a theft, and that is the end, not a loop. */
export const answerOfRefreshLost: Check = async (site) => {
  const ada = await site.connected()
  await site.outdated()
  const { state } = site.issuers.connect
  const before = (await site.stored())?.tokens
  const asked = state.tokenRequests
  state.fault = (_request, response) => {
    response.end = () => response.destroy()
    return false
  }
  await expect(site.tokenFor()).rejects.toThrow()
  state.fault = null
  expect((await site.stored())?.tokens).toBe(before)
  for (let again = 0; again < 3; again++) await expect(site.tokenFor()).rejects.toThrow('Connect again')
  expect(state.tokenRequests).toBe(asked + 2)
  const trouble = expect.stringContaining('Connect again')
  expect(await connectionOf(ada)).toMatchObject({ isConnected: false, trouble })
  await come(ada, await wayBack(ada, 'connect'))
  expect(await site.tokenFor()).toEqual(expect.any(String))
}

/** Before the provider answers the next request for tokens. */
function meanwhile({ issuers: { connect } }: OAuthSite, act: () => Promise<unknown>): void {
  connect.state.fault = async () => {
    connect.state.fault = null
    await act()
    return false
  }
}

export const signedOutMeanwhile: Check = async (site) => {
  const { browser, back } = await site.begin('connect')
  const tab = await site.browserFor('sign-in')
  for (const pair of browser.cookies) tab.cookies.set(...pair)
  meanwhile(site, () => tab.post('/api/auth/sign-out'))
  expect(await come(browser, back)).toMatchObject(refused('account'))
  expect(await site.stored()).toBeUndefined()
}

export const removedMeanwhile: Check = async (site) => {
  const ada = await site.connected()
  await site.outdated()
  meanwhile(site, () => ada.send('DELETE', '/api/connection'))
  const tokens = await Promise.all(Array.from({ length: 10 }, () => site.tokenFor()))
  expect(tokens).toEqual(Array(10).fill(null))
  expect(await site.stored()).toBeUndefined()
}

const NEW_KEY = `new:${'n'.repeat(32)}`

export const keyChanged: Check = async (site) => {
  const { env } = site.deployment
  const ada = await site.connected()
  await storeModelKey(ada)
  const visitor = await site.browserFor('sign-in')
  const back = await wayBack(visitor, 'sign-in')
  await storeUnreadableVisits(site)
  const provider = site.provider()
  const asked = { userId: ADA, provider }

  const rotating = await openDatabase(readApiConfig({ ...env, SECRET_KEYS: `${NEW_KEY},${env['SECRET_KEYS']}` }))
  await site.outdated()
  const using = Promise.all(Array.from({ length: 10 }, () => accessToken(rotating, asked)))
  const { visits } = await rotateSecrets(rotating)
  expect(visits.unreadable).toBe(UNREADABLE.length)
  expect(visits.sealed).toBeGreaterThan(0)
  expect(new Set(await using).size).toBe(1)
  const nothing = { sealed: 0, unreadable: 0 }
  const again = { settings: nothing, auth: nothing, visits: { sealed: 0, unreadable: UNREADABLE.length } }
  expect(await rotateSecrets(rotating)).toEqual(again)
  await rotating.close()

  // The old key is gone, and nothing needs it: no token, no key of a model, nobody who is on the way.
  const after = await openDatabase(readApiConfig({ ...env, SECRET_KEYS: NEW_KEY }))
  const api = await site.deployment.startApi({ SECRET_KEYS: NEW_KEY })
  expect(await accessToken(after, asked)).toEqual(expect.any(String))
  const { api_key } = await after.db.selectFrom('settings').select('api_key').executeTakeFirstOrThrow()
  expect(after.vault.open(api_key ?? '', placeOfKey(ADA))).toBe(MODEL_KEY)
  visitor.urls = [api.url]
  expect((await come(visitor, back)).location).not.toContain('oauth_error')
  for (const table of ['settings', 'auth', 'oauth_state'] as const) await after.db.deleteFrom(table).execute()
  await api.stop()
  await after.close()
}

/** Of a key that was taken away, and of none at all. */
const UNREADABLE = ['gone.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'nothing']

async function storeUnreadableVisits({ database: { db } }: OAuthSite): Promise<void> {
  const visit = await db.selectFrom('oauth_state').selectAll().executeTakeFirstOrThrow()
  const visits = UNREADABLE.map((verifier, number) => ({ ...visit, verifier, state_hash: `unreadable ${number}` }))
  await db.insertInto('oauth_state').values(visits).execute()
}

const MODEL_KEY = 'sk-of-ada'

async function storeModelKey(ada: Browser): Promise<void> {
  const base_url = 'https://api.openai.com/v1'
  const settings = { provider: 'openai-compatible', base_url, model: 'm', reasoning: 'low', api_key: MODEL_KEY }
  expect((await ada.send('PUT', '/api/settings', settings)).status).toBe(200)
}

export const sealedForAnotherRow: Check = async (site, purpose) => {
  const { db } = site.database
  const [own, other] = [await site.begin(purpose, '/there'), await site.begin(purpose)]
  const verifiers = db.selectFrom('oauth_state').select('verifier')
  const { verifier } = await verifiers.where('state_hash', '=', stateOf(other.back)).executeTakeFirstOrThrow()
  await site.rowsChanged(own.back, { verifier })
  const { state } = site.issuers[purpose]
  const before = state.tokenRequests
  expect(await come(own.browser, own.back)).toMatchObject(refused('provider', '/there'))
  expect(state.tokenRequests).toBe(before)
  await expectOver(own, purpose)
  if (purpose === 'connect') await expectTokensOfOneRow(site)
}

async function expectTokensOfOneRow(site: OAuthSite): Promise<void> {
  const { db, vault } = site.database
  const { tokens = '' } = (await site.stored(ADA)) ?? {}
  const grace = await (await site.browserFor('sign-in')).be('grace')
  await come(grace, await wayBack(grace, 'connect'))
  expect(await site.tokenFor(GRACE)).toEqual(expect.any(String))
  await db.updateTable('auth').set({ tokens }).where('user_id', '=', GRACE).execute()
  await expect(site.tokenFor(GRACE)).rejects.toThrow()
  expect(() => vault.open(tokens, { ...placeOfTokens(ADA, 'openai'), column: 'other' })).toThrow()
  await db.deleteFrom('auth').execute()
}

const GRACE = 'demo-grace'
