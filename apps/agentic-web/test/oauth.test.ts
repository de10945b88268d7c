import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readApiConfig, readWorkerConfig } from '../src/config'
import { type Database, openDatabase } from '../src/database/open'
import { rotateSecrets } from '../src/keys/rotate'
import { placeOfKey } from '../src/settings/settings'
import { accessToken } from '../src/oauth/connection'
import { createProvider } from '../src/oauth/provider'
import { returnPathOf } from '../src/oauth/return-path'
import { hashOf } from '../src/secrets/tokens'
import { Browser, deploy, type Deployment, ENV, PUBLIC_URL } from './deployment'
import { CLIENT, type Issuer, startIssuer, visit, wayBack } from './issuer'

type Purpose = 'sign-in' | 'connect'

const CALLBACKS = { 'sign-in': '/auth/sign-in/callback', connect: '/auth/callback' } as const

let deployment: Deployment & { end(): Promise<void> }
let issuers: Readonly<Record<Purpose, Issuer>>
let urls: readonly [string, string]
let database: Database

beforeAll(async () => {
  const redirectUris = Object.values(CALLBACKS).map((path) => `${PUBLIC_URL}${path}`)
  const [signIn, connect] = await Promise.all([startIssuer({ redirectUris }), startIssuer({ redirectUris })])
  issuers = { 'sign-in': signIn, connect }
  deployment = await deploy({
    TRUSTED_PROXIES: '1',
    SIGN_IN_ISSUER: signIn.url,
    SIGN_IN_CLIENT_ID: CLIENT.id,
    SIGN_IN_CLIENT_SECRET: CLIENT.secret,
    OPENAI_OAUTH_ISSUER: connect.url,
    OPENAI_OAUTH_CLIENT_ID: CLIENT.id,
    OPENAI_OAUTH_CLIENT_SECRET: CLIENT.secret,
  })
  const [first, second] = await Promise.all([deployment.startApi(), deployment.startApi()])
  urls = [first.url, second.url]
  database = await openDatabase(readApiConfig(deployment.env))
})
afterAll(async () => {
  await database.close()
  await deployment.end()
  await Promise.all(Object.values(issuers).map((issuer) => issuer.end()))
})

/** A browser that asks both instances in turn: what one begins, the other ends. */
function somebody(): Browser {
  const browser = new Browser(...urls)
  browser.address = `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`
  return browser
}

async function browserFor(purpose: Purpose): Promise<Browser> {
  return purpose === 'sign-in' ? somebody() : somebody().be('ada')
}

async function come(browser: Browser, back: URL, headers: Record<string, string> = {}) {
  const response = await browser.fetch(`${back.pathname}${back.search}`, { headers })
  const location = response.headers.get('location')
  return { status: response.status, location, text: await response.text() }
}

const refused = (failure: string, path = '/') => ({
  status: 303,
  location: `${PUBLIC_URL}${path}?oauth_error=${failure}`,
})

async function connectionOf(browser: Browser) {
  return (await browser.get('/api/connection')).body
}

async function isIn(browser: Browser, purpose: Purpose): Promise<boolean> {
  if (purpose === 'sign-in') return (await browser.get('/api/me')).status === 200
  return (await connectionOf(browser)).isConnected
}

/** Nobody is connected when a case begins. */
async function begin(purpose: Purpose, returnTo?: string) {
  const browser = await browserFor(purpose)
  if (purpose === 'connect') await browser.send('DELETE', '/api/connection')
  return { browser, back: await wayBack(browser, purpose, { returnTo }) }
}

function changed(url: URL, change: (parameters: URLSearchParams) => void): URL {
  const other = new URL(url)
  change(other.searchParams)
  return other
}

async function rowsChanged(back: URL, values: object): Promise<void> {
  const state_hash = hashOf(back.searchParams.get('state') ?? '')
  await database.db.updateTable('oauth_state').set(values).where('state_hash', '=', state_hash).execute()
}

describe.each(['sign-in', 'connect'] as const)('a visit to %s', (purpose) => {
  it('begun at one instance ends at the other', async () => {
    const { browser, back } = await begin(purpose, '/settings?tab=model')
    const connected = purpose === 'connect' ? '&connected=1' : ''
    expect(await come(browser, back)).toMatchObject({
      status: 303,
      location: `${PUBLIC_URL}/settings?tab=model${connected}`,
    })
    expect(await isIn(browser, purpose)).toBe(true)
    if (purpose === 'sign-in') expect((await browser.get('/api/me')).body.user.name).toBe('<b>alice</b>')
  })

  const broken: Readonly<Record<string, (back: URL, browser: Browser) => URL | Promise<URL>>> = {
    'without a state': (back) => changed(back, (each) => each.delete('state')),
    'with an empty state': (back) => changed(back, (each) => each.set('state', '')),
    'with a state of its own making': (back) => changed(back, (each) => each.set('state', 'x'.repeat(43))),
    'with two states': (back) => changed(back, (each) => each.append('state', 'other')),
    'with the same state twice': (back) => changed(back, (each) => each.append('state', each.get('state') ?? '')),
    'with two codes': (back) => changed(back, (each) => each.append('code', 'other')),
    'with two issuers': (back) => changed(back, (each) => each.append('iss', 'http://evil.test')),
    'at the callback of the other use': (back) => {
      return new URL(`${CALLBACKS[purpose === 'connect' ? 'sign-in' : 'connect']}${back.search}`, PUBLIC_URL)
    },
    'a second too late': async (back) => {
      await rowsChanged(back, { expires_at: new Date(Date.now() - 1000) })
      return back
    },
    'in another browser': (back, browser) => {
      browser.cookies.delete('visit')
      return back
    },
    'in a browser with a visit of its own': async (back, browser) => {
      browser.cookies.set('visit', 'x'.repeat(43))
      return back
    },
    'begun at a provider that is not the one of now': async (back) => {
      await rowsChanged(back, { issuer: 'http://before.test' })
      return back
    },
    'begun for another redirect_uri': async (back) => {
      await rowsChanged(back, { redirect_uri: 'http://localhost:1/auth/callback' })
      return back
    },
  }
  it.each(Object.entries(broken))('that comes back %s is refused', async (_how, breakIt) => {
    const { browser, back } = await begin(purpose)
    const address = await breakIt(back, browser)
    const before = issuers[purpose].state.tokenRequests
    expect(await come(browser, address)).toMatchObject(refused('state'))
    expect(issuers[purpose].state.tokenRequests).toBe(before)
    expect(await isIn(browser, purpose)).toBe(false)
  })

  const spoilt: Readonly<Record<string, (back: URL) => URL | Promise<URL>>> = {
    'of a wrong issuer': (back) => changed(back, (each) => each.set('iss', 'http://evil.test')),
    'without its issuer': (back) => changed(back, (each) => each.delete('iss')),
    'without a code': (back) => changed(back, (each) => each.delete('code')),
    'with a code of its own making': (back) => changed(back, (each) => each.set('code', 'x'.repeat(43))),
    'with the code of somebody else': async (back) => {
      const { back: other } = await begin(purpose)
      return changed(back, (each) => each.set('code', other.searchParams.get('code') ?? ''))
    },
    'with a code of the other provider': async (back) => {
      const { back: other } = await begin(purpose === 'connect' ? 'sign-in' : 'connect')
      return changed(back, (each) => each.set('code', other.searchParams.get('code') ?? ''))
    },
    'with a code that was used': async (back) => {
      const { browser, back: other } = await begin(purpose)
      await come(browser, other)
      if (purpose === 'connect') await browser.send('DELETE', '/api/connection')
      return changed(back, (each) => each.set('code', other.searchParams.get('code') ?? ''))
    },
    'for another nonce': async (back) => {
      await rowsChanged(back, { nonce: 'another' })
      return back
    },
  }
  it.each(Object.entries(spoilt))('that comes back %s is refused, and over', async (_how, spoil) => {
    const { browser, back } = await begin(purpose, '/there')
    const address = await spoil(back)
    expect(await come(browser, address)).toMatchObject(refused('provider', '/there'))
    expect(await isIn(browser, purpose)).toBe(false)
    expect(await come(browser, back)).toMatchObject(refused('state'))
  })

  it('counts once', async () => {
    const { browser, back } = await begin(purpose)
    expect((await come(browser, back)).location).not.toContain('oauth_error')
    expect(await come(browser, back)).toMatchObject(refused('state'))
  })

  it('counts once, of 50 that come at the same time at two instances', async () => {
    const { browser, back } = await begin(purpose)
    const before = issuers[purpose].state.tokenRequests
    const all = await Promise.all(Array.from({ length: 50 }, () => come(browser, back)))
    expect(all.filter(({ location }) => location?.includes('oauth_error') === false)).toHaveLength(1)
    expect(issuers[purpose].state.tokenRequests).toBe(before + 1)
  })

  it('has a second of time left, and is in time', async () => {
    const { browser, back } = await begin(purpose)
    await rowsChanged(back, { expires_at: new Date(Date.now() + 60_000) })
    expect((await come(browser, back)).location).not.toContain('oauth_error')
  })

  it('that the user or the provider refuses says so in words of ours', async () => {
    issuers[purpose].state.agrees = false
    const { browser, back } = await begin(purpose)
    issuers[purpose].state.agrees = true
    expect(back.searchParams.get('error_description')).toContain('<script>')
    const answer = await come(browser, back)
    expect(answer).toMatchObject(refused('denied'))
    expect(answer.text).not.toContain('script')
  })

  const faults: Readonly<Record<string, Issuer['state']['fault']>> = {
    'answers 500': (_request, response) => Boolean(response.writeHead(500).end('<b>')),
    'hangs up': (_request, response) => Boolean(response.destroy()),
    'answers nonsense': (_request, response) =>
      Boolean(response.writeHead(200, { 'content-type': 'application/json' }).end('{"access')),
  }
  it.each(Object.entries(faults))('whose provider %s comes to nothing, and can begin anew', async (_how, fault) => {
    const { browser, back } = await begin(purpose)
    issuers[purpose].state.fault = fault
    expect(await come(browser, back)).toMatchObject(refused('provider'))
    issuers[purpose].state.fault = null
    expect(await isIn(browser, purpose)).toBe(false)
    expect((await come(browser, await wayBack(browser, purpose))).location).not.toContain('oauth_error')
  })

  it('goes with S256, a state of 256 bits, and to the address of the configuration, whatever host was asked', async () => {
    const browser = await browserFor(purpose)
    const poison = { 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'https', forwarded: 'host=evil.test' }
    const init = purpose === 'connect' ? { method: 'POST', body: '{}' } : {}
    const path = purpose === 'connect' ? '/api/oauth/openai/start' : '/auth/sign-in'
    const response = await browser.fetch(path, { ...init, headers: { ...poison, 'content-type': 'application/json' } })
    const address = response.headers.get('location') ?? ((await response.json()) as { url: string }).url
    const { searchParams } = new URL(address)
    expect(searchParams.get('redirect_uri')).toBe(`${PUBLIC_URL}${CALLBACKS[purpose]}`)
    expect(searchParams.get('code_challenge_method')).toBe('S256')
    expect(Buffer.from(searchParams.get('state') ?? '', 'base64url')).toHaveLength(32)
    const back = await visit(address, PUBLIC_URL)
    expect((await come(browser, back, poison)).location).toMatch(new RegExp(`^${PUBLIC_URL}/(\\?connected=1)?$`))
  })

  it.each(['plain', null])(
    'whose challenge somebody has made %s on the way is refused by the provider',
    async (method) => {
      const browser = await browserFor(purpose)
      if (purpose === 'connect') await browser.send('DELETE', '/api/connection')
      const address =
        purpose === 'connect'
          ? (await browser.post('/api/oauth/openai/start', {})).body.url
          : (await browser.fetch('/auth/sign-in')).headers.get('location')
      const weak = changed(new URL(address), (each) => {
        if (method === null) each.delete('code_challenge')
        each.delete('code_challenge_method')
        if (method !== null) each.set('code_challenge_method', method)
      })
      const back = await visit(weak.href, PUBLIC_URL)
      expect(await come(browser, back)).toMatchObject(refused('provider'))
      expect(await isIn(browser, purpose)).toBe(false)
    },
  )

  it('keeps nothing in the database with which it could be ended elsewhere', async () => {
    const { browser, back } = await begin(purpose)
    const rows = JSON.stringify(await database.db.selectFrom('oauth_state').selectAll().execute())
    expect(rows).not.toContain(back.searchParams.get('state'))
    expect(rows).not.toContain(browser.cookies.get('visit'))
  })
})

describe('where a visit leads to', () => {
  const elsewhere = [
    '//evil.test',
    '/\\evil.test',
    '\\\\evil.test',
    '/\t/evil.test',
    '/%09//evil.test/..//',
    'https://evil.test',
    'https:evil.test',
    'https://agentic.test@evil.test',
    'javascript:alert(1)',
    'data:text/html,x',
    '/..//evil.test',
    '/.//evil.test',
    ' //evil.test',
    '/\u0000/evil.test',
    'http://agentic.test.evil.test',
    'evil.test',
    '',
    '//ägentic.test',
    '///evil.test',
    '/\r\nlocation: https://evil.test',
  ]
  it.each(elsewhere)('is never another site: %j', (given) => {
    const path = returnPathOf(given)
    const url = new URL(path, PUBLIC_URL)
    expect(url.origin).toBe(PUBLIC_URL)
    expect(path).toMatch(/^\/(?!\/)/)
    expect(new URL(`${url.pathname}${url.search}`, 'https://any.test').origin).toBe('https://any.test')
  })

  it('is the page that was asked for', () => {
    expect(returnPathOf('/sessions/7?a=b#c')).toBe('/sessions/7?a=b#c')
  })
})

describe('a connected account', () => {
  const connect = async () => {
    const { browser, back } = await begin('connect')
    await come(browser, back)
    return browser
  }
  const outdated = () =>
    database.db.updateTable('auth').set({ expires_at: new Date() }).where('user_id', '=', 'demo-ada').execute()
  const stored = () => database.db.selectFrom('auth').where('user_id', '=', 'demo-ada').selectAll().executeTakeFirst()
  const provider = () => {
    const config = readWorkerConfig(deployment.env)
    if (config.openai === null) throw new Error('There is no provider.')
    return createProvider(config.openai, config)
  }

  it('is of who has begun, and of nobody who signed in meanwhile in the same browser', async () => {
    const { browser, back } = await begin('connect')
    await browser.be('grace')
    expect(await come(browser, back)).toMatchObject(refused('account'))
    expect((await connectionOf(browser)).isConnected).toBe(false)
    await browser.post('/api/auth/sign-out')
    const { browser: second, back: later } = await begin('connect')
    await second.post('/api/auth/sign-out')
    expect(await come(second, later)).toMatchObject(refused('account'))
  })

  it('is renewed by one of 40 who need it at once, in two processes', async () => {
    await connect()
    const other = await openDatabase(readApiConfig(deployment.env))
    await outdated()
    const before = issuers.connect.state.tokenRequests
    const [one, two] = [provider(), provider()]
    const tokens = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        accessToken(n % 2 === 0 ? database : other, { userId: 'demo-ada', provider: n % 2 === 0 ? one : two }),
      ),
    )
    await other.close()
    expect(new Set(tokens).size).toBe(1)
    expect(issuers.connect.state.tokenRequests).toBe(before + 1)
    expect((await stored())?.generation).toBe(2)
  })

  it('stays when an answer to a renewal is lost before it is given, and is renewed the next time', async () => {
    await connect()
    await outdated()
    const before = (await stored())?.tokens
    issuers.connect.state.fault = (_request, response) => Boolean(response.destroy())
    const asked = { userId: 'demo-ada', provider: provider() }
    await expect(accessToken(database, asked)).rejects.toThrow()
    issuers.connect.state.fault = null
    expect((await stored())?.tokens).toBe(before)
    expect(await accessToken(database, asked)).toEqual(expect.any(String))
  })

  it('that the provider has ended says so, and asks for no more', async () => {
    const ada = await connect()
    await outdated()
    issuers.connect.state.fault = (_request, response) =>
      Boolean(response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}'))
    const asked = { userId: 'demo-ada', provider: provider() }
    await expect(accessToken(database, asked)).rejects.toThrow('Connect again')
    const count = issuers.connect.state.tokenRequests
    await expect(accessToken(database, asked)).rejects.toThrow('Connect again')
    issuers.connect.state.fault = null
    expect(issuers.connect.state.tokenRequests).toBe(count)
    expect(await connectionOf(ada)).toMatchObject({
      isConnected: false,
      trouble: expect.stringContaining('Connect again'),
    })
  })

  it('that is removed while it is renewed stays removed', async () => {
    const ada = await connect()
    await outdated()
    issuers.connect.state.fault = async () => {
      issuers.connect.state.fault = null
      await ada.send('DELETE', '/api/connection')
      return false
    }
    await accessToken(database, { userId: 'demo-ada', provider: provider() }).catch(() => {})
    expect(await stored()).toBeUndefined()
  })

  it('that is made anew while it is renewed is the new one', async () => {
    const ada = await connect()
    await outdated()
    const again = await wayBack(ada, 'connect')
    let made: string | undefined
    issuers.connect.state.fault = async () => {
      issuers.connect.state.fault = null
      await come(ada, again)
      made = (await stored())?.tokens
      return false
    }
    const token = await accessToken(database, { userId: 'demo-ada', provider: provider() })
    const row = await stored()
    expect(row?.tokens).toBe(made)
    expect(token).toBe(JSON.parse(database.vault.open(row?.tokens ?? '', place('demo-ada'))).access)
  })

  const place = (userId: string) => ({ table: 'auth', column: 'tokens', row: `${userId}/openai` })

  it('is told to no page, and its tokens can be read in no other row', async () => {
    const ada = await connect()
    const row = await stored()
    expect(row?.tokens).toMatch(/^test\./)
    const { access } = JSON.parse(database.vault.open(row?.tokens ?? '', place('demo-ada')))
    expect(JSON.stringify(await connectionOf(ada))).not.toContain(access)
    expect(() => database.vault.open(row?.tokens ?? '', place('demo-grace'))).toThrow()
    expect(() => database.vault.open(row?.tokens ?? '', { ...place('demo-ada'), column: 'other' })).toThrow()
    const [id, text = ''] = (row?.tokens ?? '').split('.')
    expect(() => database.vault.open(`${id}.${text.slice(0, -17)}`, place('demo-ada'))).toThrow()
  })

  it('is sealed anew while it is used, as keys of models are, and needs the old key no more', async () => {
    const ada = await connect()
    const settings = {
      provider: 'openai-compatible',
      base_url: 'https://api.openai.com/v1',
      model: 'm',
      reasoning: 'low',
    }
    expect((await ada.send('PUT', '/api/settings', { ...settings, api_key: 'sk-of-ada' })).status).toBe(200)
    const keys = `new:${'n'.repeat(32)},${deployment.env['SECRET_KEYS']}`
    const rotating = await openDatabase(readApiConfig({ ...deployment.env, SECRET_KEYS: keys }))
    await outdated()
    const asked = { userId: 'demo-ada', provider: provider() }
    const using = Promise.all(Array.from({ length: 10 }, () => accessToken(rotating, asked)))
    await rotateSecrets(rotating)
    await using
    await rotateSecrets(rotating)
    expect((await stored())?.tokens).toMatch(/^new\./)
    await rotating.close()
    const after = await openDatabase(readApiConfig({ ...deployment.env, SECRET_KEYS: `new:${'n'.repeat(32)}` }))
    expect(await accessToken(after, asked)).toEqual(expect.any(String))
    const { api_key } = await after.db.selectFrom('settings').select('api_key').executeTakeFirstOrThrow()
    expect(after.vault.open(api_key ?? '', placeOfKey('demo-ada'))).toBe('sk-of-ada')
    await after.close()
    await database.db.deleteFrom('settings').execute()
    await database.db.deleteFrom('auth').execute()
  })
})

describe('signing in', () => {
  it('gives a new cookie each time, which scripts cannot read, and signing out ends it at all instances', async () => {
    const { browser, back } = await begin('sign-in')
    const planted = 'p'.repeat(43)
    browser.cookies.set('login', planted)
    const response = await browser.fetch(`${back.pathname}${back.search}`)
    const cookie = response.headers.getSetCookie().find((line) => line.startsWith('login='))
    expect(cookie).toMatch(/HttpOnly/)
    expect(cookie).toMatch(/SameSite=Lax/)
    expect(browser.cookies.get('login')).not.toBe(planted)
    const copy = new Map(browser.cookies)
    await browser.post('/api/auth/sign-out')
    for (const url of urls) {
      const thief = new Browser(url)
      for (const pair of copy) thief.cookies.set(...pair)
      expect((await thief.get('/api/me')).status).toBe(401)
    }
  })

  it('the same account is the same user again, and another account another one', async () => {
    const ids: string[] = []
    for (const account of ['alice', 'bob', 'alice']) {
      issuers['sign-in'].state.account = account
      const { browser, back } = await begin('sign-in')
      await come(browser, back)
      ids.push((await browser.get('/api/me')).body.user.id)
    }
    issuers['sign-in'].state.account = 'alice'
    expect(ids[0]).toBe(ids[2])
    expect(ids[0]).not.toBe(ids[1])
  })

  it('too often from one address is refused, at all instances together', async () => {
    const browser = somebody()
    const answers = []
    for (let n = 0; n < 40; n++) answers.push((await browser.fetch('/auth/sign-in')).status)
    expect(answers.slice(0, 20)).toEqual(Array(20).fill(302))
    expect(answers.at(-1)).toBe(429)
    expect((await somebody().fetch('/auth/sign-in')).status).toBe(302)
  })
})

describe('in prod', () => {
  const PROD = {
    ...ENV,
    PROFILE: 'prod',
    DATABASE_URL: 'postgres://localhost/app',
    PUBLIC_URL: 'https://chat.example.com',
    DEMO_USERS: '0',
    SIGN_IN_ISSUER: 'https://id.example.com',
    SIGN_IN_CLIENT_ID: 'chat',
  }
  it('only what is safe there is accepted, and everything that is not is said at once', () => {
    expect(readApiConfig(PROD).publicUrl).toBe('https://chat.example.com')
    const wrong = {
      ...PROD,
      PUBLIC_URL: 'http://localhost:8080',
      DEMO_USERS: '1',
      SIGN_IN_ISSUER: 'http://id.example.com',
      SECRET_KEYS: 'dev:for-development-only-0123456789abcdef',
      LINK_SECRET: 'for-development-only-0123456789abcdef',
    }
    const told = (() => {
      try {
        readApiConfig(wrong)
      } catch (error) {
        return String(error)
      }
      return ''
    })()
    for (const word of ['https in prod', 'loopback', 'DEMO_USERS', 'SIGN_IN_ISSUER', 'SECRET_KEYS', 'LINK_SECRET']) {
      expect(told).toContain(word)
    }
  })

  it.each([
    'http://127.0.0.1',
    'https://localhost',
    'https://[::1]',
    'https://127.0.0.1:8443',
    'https://127.1.2.3',
    'https://2130706433',
    'https://localhost.',
    'https://chat.localhost',
    'https://[::ffff:127.0.0.1]',
    'https://[::]',
    'http://chat.example.com',
  ])('the browser cannot be sent back to %s', (publicUrl) => {
    expect(() => readApiConfig({ ...PROD, PUBLIC_URL: publicUrl })).toThrow('PUBLIC_URL')
  })
})
