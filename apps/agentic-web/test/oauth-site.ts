import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import { readApiConfig, readWorkerConfig } from '../src/config'
import { type Database, openDatabase } from '../src/database/open'
import { accessToken } from '../src/oauth/connection'
import { createProvider, type Provider } from '../src/oauth/provider'
import { takeVisit } from '../src/oauth/visits'
import { hashOf } from '../src/secrets/tokens'
import { Browser, deploy, PUBLIC_URL } from './deployment'
import { CLIENT, type Issuer, startIssuer, wayBack } from './issuer'

export type Purpose = 'sign-in' | 'connect'

export const PURPOSES: readonly Purpose[] = ['sign-in', 'connect']

export const CALLBACKS = { 'sign-in': '/auth/sign-in/callback', connect: '/auth/callback' } as const

export const ADA = 'demo-ada'

/** Two apis on one database, with a provider to sign in with and another one to connect an account at. */
export type OAuthSite = Awaited<ReturnType<typeof openOAuthSite>>

/** What a browser is told that comes back from a provider. */
export interface Arrival {
  readonly status: number
  readonly location: string | null
  readonly text: string
}

export async function openOAuthSite() {
  const redirectUris = Object.values(CALLBACKS).map((path) => `${PUBLIC_URL}${path}`)
  const [signIn, connect] = await Promise.all([startIssuer({ redirectUris }), startIssuer({ redirectUris })])
  const issuers: Readonly<Record<Purpose, Issuer>> = { 'sign-in': signIn, connect }
  const deployment = await deploy({
    TRUSTED_PROXIES: '1',
    SIGN_IN_ISSUER: signIn.url,
    SIGN_IN_CLIENT_ID: CLIENT.id,
    SIGN_IN_CLIENT_SECRET: CLIENT.secret,
    OPENAI_OAUTH_ISSUER: connect.url,
    OPENAI_OAUTH_CLIENT_ID: CLIENT.id,
    OPENAI_OAUTH_CLIENT_SECRET: CLIENT.secret,
  })
  const apis = await Promise.all([deployment.startApi(), deployment.startApi()])
  const urls = apis.map(({ url }) => url)
  const database = await openDatabase(readApiConfig(deployment.env))
  const { db } = database
  /** Begins a visit and goes through the provider. Nobody is connected then. */
  async function begin(purpose: Purpose, returnTo?: string) {
    const browser = await browserFor(urls, purpose)
    if (purpose === 'connect') await browser.send('DELETE', '/api/connection')
    return { browser, back: await wayBack(browser, purpose, { returnTo }) }
  }
  function provider(): Provider {
    const config = readWorkerConfig(deployment.env)
    if (config.openai === null) throw new Error('There is no provider.')
    return createProvider(config.openai, config)
  }
  return {
    ...{ deployment, issuers, urls, database, begin, provider },
    browserFor: (purpose: Purpose) => browserFor(urls, purpose),
    async connected(): Promise<Browser> {
      const { browser, back } = await begin('connect')
      await come(browser, back)
      return browser
    },
    rowsChanged: (back: URL, values: object) => rowsChanged(database, back, values),
    takenAt: (back: URL, given: Taking) => takenAt(database, back, given),
    /** What is stored of the connection of somebody. */
    stored: (userId = ADA) => db.selectFrom('auth').where('user_id', '=', userId).selectAll().executeTakeFirst(),
    outdated: () => db.updateTable('auth').set({ expires_at: new Date() }).execute(),
    /** As a worker asks for it. */
    tokenFor: (userId = ADA) => accessToken(database, { userId, provider: provider() }),
    async end() {
      await database.close()
      await deployment.end()
      await Promise.all([signIn.end(), connect.end()])
    },
  }
}

/** A browser that asks both instances in turn: what one begins, the other ends. */
export function somebody(urls: readonly string[]): Browser {
  const browser = new Browser(...urls)
  browser.address = `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`
  return browser
}

async function browserFor(urls: readonly string[], purpose: Purpose): Promise<Browser> {
  return purpose === 'sign-in' ? somebody(urls) : somebody(urls).be('ada')
}

export async function come(browser: Browser, back: URL, headers: Record<string, string> = {}): Promise<Arrival> {
  const response = await browser.fetch(`${back.pathname}${back.search}`, { headers })
  return { status: response.status, location: response.headers.get('location'), text: await response.text() }
}

export const refused = (failure: string, path = '/') => ({
  status: 303,
  location: `${PUBLIC_URL}${path}?oauth_error=${failure}`,
})

export async function connectionOf(browser: Browser) {
  return (await browser.get('/api/connection')).body
}

export async function isIn(browser: Browser, purpose: Purpose): Promise<boolean> {
  if (purpose === 'sign-in') return (await browser.get('/api/me')).status === 200
  return (await connectionOf(browser)).isConnected
}

export function changed(url: URL, change: (parameters: URLSearchParams) => void): URL {
  const other = new URL(url)
  change(other.searchParams)
  return other
}

export function stateOf(back: URL): string {
  return hashOf(back.searchParams.get('state') ?? '')
}

async function rowsChanged({ db }: Database, back: URL, values: object): Promise<void> {
  await db.updateTable('oauth_state').set(values).where('state_hash', '=', stateOf(back)).execute()
}

interface Taking {
  readonly browser: Browser
  readonly purpose: Purpose
  readonly issuer: Issuer
  /** So long before its end, in the clock of the database, which stands still in a transaction. */
  readonly secondsLeft: number
}

function takenAt({ db, vault }: Database, back: URL, { browser, purpose, issuer, secondsLeft }: Taking) {
  return db.transaction().execute(async (trx) => {
    await trx
      .updateTable('oauth_state')
      .set({ expires_at: sql<Date>`now() + make_interval(secs => ${secondsLeft})` })
      .where('state_hash', '=', stateOf(back))
      .execute()
    return takeVisit(
      { db: trx, vault },
      {
        state: back.searchParams.get('state') ?? '',
        provider: { issuer: issuer.url } as Provider,
        purpose,
        redirectUri: `${PUBLIC_URL}${CALLBACKS[purpose]}`,
        browserToken: browser.cookies.get('visit') ?? '',
      },
    )
  })
}

interface Asking {
  readonly url: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** As a browser asks, but with a Host of its own, which `fetch` would not send. Gives what it is sent to. */
export async function askAsHost(browser: Browser, { url, method, path, headers }: Asking): Promise<string> {
  const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ')
  const own = { origin: PUBLIC_URL, 'x-forwarded-for': browser.address ?? '', cookie }
  const asked = request(new URL(path, url), { method, headers: { ...own, ...headers }, agent: false })
  asked.end(method === 'POST' ? '{}' : undefined)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  for (const line of response.headers['set-cookie'] ?? []) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    browser.cookies.set(name, value)
  }
  const said = await text(response)
  return response.headers.location ?? (JSON.parse(said) as { url: string }).url
}
