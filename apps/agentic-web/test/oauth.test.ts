import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { readApiConfig } from '../src/config'
import { placeOfTokens } from '../src/oauth/place'
import { returnPathOf } from '../src/oauth/return-path'
import { Browser, PUBLIC_URL } from './deployment'
import { type Issuer, wayBack, wayTo } from './issuer'
import { sayAll, startModelServer } from './model-server'
import { PROD } from './oauth-address-checks'
import { OAUTH_CASES } from './oauth-cases'
import {
  ADA,
  changed,
  come,
  connectionOf,
  isIn,
  type OAuthSite,
  openOAuthSite,
  PURPOSES,
  refused,
  somebody,
} from './oauth-site'

let site: OAuthSite

beforeAll(async () => {
  site = await openOAuthSite()
})
afterAll(() => site.end())

describe('of the 48 cases of the plan', () => {
  it('none is missing, and none is there twice', () => {
    expect(new Set(OAUTH_CASES.map(({ name }) => name)).size).toBe(48)
  })

  for (const [index, { name, uses, check }] of OAUTH_CASES.entries()) {
    for (const purpose of uses) it(`${index + 1}: ${name} (${purpose})`, () => check(site, purpose))
  }
})

describe.each(PURPOSES)('a visit to %s', (purpose) => {
  const broken: Readonly<Record<string, (back: URL) => URL | Promise<URL>>> = {
    'with an empty state': (back) => changed(back, (each) => each.set('state', '')),
    'with a state of its own making': (back) => changed(back, (each) => each.set('state', 'x'.repeat(43))),
    'with the same state twice': (back) => changed(back, (each) => each.append('state', each.get('state') ?? '')),
    'begun for another redirect_uri': async (back) => {
      await site.rowsChanged(back, { redirect_uri: 'http://localhost:1/auth/callback' })
      return back
    },
  }
  it.each(Object.entries(broken))('that comes back %s is refused', async (_how, breakIt) => {
    const { browser, back } = await site.begin(purpose)
    const address = await breakIt(back)
    const before = site.issuers[purpose].state.tokenRequests
    expect(await come(browser, address)).toMatchObject(refused('state'))
    expect(site.issuers[purpose].state.tokenRequests).toBe(before)
    expect(await isIn(browser, purpose)).toBe(false)
  })

  const spoilt: Readonly<Record<string, (back: URL) => URL | Promise<URL>>> = {
    'without a code': (back) => changed(back, (each) => each.delete('code')),
    'with a code of its own making': (back) => changed(back, (each) => each.set('code', 'x'.repeat(43))),
    'for another nonce': async (back) => {
      await site.rowsChanged(back, { nonce: 'another' })
      return back
    },
  }
  it.each(Object.entries(spoilt))('that comes back %s is refused, and over', async (_how, spoil) => {
    const { browser, back } = await site.begin(purpose, '/there')
    const address = await spoil(back)
    expect(await come(browser, address)).toMatchObject(refused('provider', '/there'))
    expect(await isIn(browser, purpose)).toBe(false)
    expect(await come(browser, back)).toMatchObject(refused('state'))
  })

  const faults: Readonly<Record<string, Issuer['state']['fault']>> = {
    'hangs up': (_request, response) => Boolean(response.destroy()),
    'answers nonsense': (_request, response) =>
      Boolean(response.writeHead(200, { 'content-type': 'application/json' }).end('{"access')),
  }
  it.each(Object.entries(faults))('whose provider %s comes to nothing, and can begin anew', async (_how, fault) => {
    const { state } = site.issuers[purpose]
    const { browser, back } = await site.begin(purpose)
    state.fault = fault
    expect(await come(browser, back)).toMatchObject(refused('provider'))
    state.fault = null
    expect(await isIn(browser, purpose)).toBe(false)
    expect((await come(browser, await wayBack(browser, purpose))).location).not.toContain('oauth_error')
  })

  it('goes with S256, and a state of 256 bits', async () => {
    const { searchParams } = new URL(await wayTo(await site.browserFor(purpose), purpose))
    expect(searchParams.get('code_challenge_method')).toBe('S256')
    expect(Buffer.from(searchParams.get('state') ?? '', 'base64url')).toHaveLength(32)
  })

  it('keeps nothing in the database with which it could be ended elsewhere', async () => {
    const { browser, back } = await site.begin(purpose)
    const rows = JSON.stringify(await site.database.db.selectFrom('oauth_state').selectAll().execute())
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
  it('stays when a question for a renewal is lost, and is renewed the next time', async () => {
    await site.connected()
    await site.outdated()
    const { state } = site.issuers.connect
    const before = (await site.stored())?.tokens
    state.fault = (_request, response) => Boolean(response.destroy())
    await expect(site.tokenFor()).rejects.toThrow()
    state.fault = null
    expect((await site.stored())?.tokens).toBe(before)
    expect(await site.tokenFor()).toEqual(expect.any(String))
  })

  it('that the provider has ended says so, and asks for no more', async () => {
    const ada = await site.connected()
    await site.outdated()
    const { state } = site.issuers.connect
    state.fault = (_request, response) =>
      Boolean(response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}'))
    await expect(site.tokenFor()).rejects.toThrow('Connect again')
    const count = state.tokenRequests
    await expect(site.tokenFor()).rejects.toThrow('Connect again')
    state.fault = null
    expect(state.tokenRequests).toBe(count)
    expect(await connectionOf(ada)).toMatchObject({
      isConnected: false,
      trouble: expect.stringContaining('Connect again'),
    })
  })

  it('that is made anew while it is renewed is the new one', async () => {
    const ada = await site.connected()
    await site.outdated()
    const { state } = site.issuers.connect
    const again = await wayBack(ada, 'connect')
    let made: string | undefined
    state.fault = async () => {
      state.fault = null
      await come(ada, again)
      made = (await site.stored())?.tokens
      return false
    }
    const token = await site.tokenFor()
    const row = await site.stored()
    expect(row?.tokens).toBe(made)
    expect(token).toBe(opened(row?.tokens).access)
  })

  it('is what models at its provider are asked with, and no others, unless its user has given a key', async () => {
    const answering = () => startModelServer((asked) => sayAll(asked, 'hello'))
    const [own, other] = await Promise.all([answering(), answering()])
    const env = { MODEL_HOSTS: `${own.host},${other.host}`, OPENAI_API_ORIGIN: `http://${own.host}` }
    const [api, worker] = await Promise.all([site.deployment.startApi(env), site.deployment.startWorker(env)])
    onTestFinished(async () => void (await Promise.all([api.stop(), worker.stop()])))
    const ada = await site.connected()
    ada.urls = [api.url]
    const session = await ada.newSession()
    const askWith = async (settings: object) => {
      const chosen = { provider: 'openai-compatible', model: 'm', reasoning: 'none', ...settings }
      expect((await ada.send('PUT', '/api/settings', chosen)).status).toBe(200)
      await ada.ended(await ada.say(session, 'hello'))
    }
    await askWith({ base_url: own.baseUrl })
    await askWith({ base_url: other.baseUrl })
    await askWith({ base_url: own.baseUrl, api_key: 'sk-of-ada' })
    const token = opened((await site.stored())?.tokens).access
    expect(own.asked.map(({ authorization }) => authorization)).toEqual([`Bearer ${token}`, 'Bearer sk-of-ada'])
    expect(other.asked.map(({ authorization }) => authorization)).toEqual([undefined])
    await ada.send('PUT', '/api/settings', { provider: 'demo', base_url: null, model: 'demo', reasoning: 'none' })
  })

  const opened = (tokens: string | undefined) =>
    JSON.parse(site.database.vault.open(tokens ?? '', placeOfTokens(ADA, 'openai')))

  it('is told to no page, and is sealed whole', async () => {
    const ada = await site.connected()
    const { tokens = '' } = (await site.stored()) ?? {}
    expect(tokens).toMatch(/^test\./)
    expect(JSON.stringify(await connectionOf(ada))).not.toContain(opened(tokens).access)
    expect(() => opened(tokens.slice(0, -17))).toThrow()
  })
})

describe('signing in', () => {
  it('gives a new cookie each time, which scripts cannot read, and signing out ends it at all instances', async () => {
    const { browser, back } = await site.begin('sign-in')
    const planted = 'p'.repeat(43)
    browser.cookies.set('login', planted)
    const response = await browser.fetch(`${back.pathname}${back.search}`)
    const cookie = response.headers.getSetCookie().find((line) => line.startsWith('login='))
    expect(cookie).toMatch(/HttpOnly/)
    expect(cookie).toMatch(/SameSite=Lax/)
    expect(browser.cookies.get('login')).not.toBe(planted)
    const copy = new Map(browser.cookies)
    await browser.post('/api/auth/sign-out')
    for (const url of site.urls) {
      const thief = new Browser(url)
      for (const pair of copy) thief.cookies.set(...pair)
      expect((await thief.get('/api/me')).status).toBe(401)
    }
  })

  it('the same account is the same user again, and another account another one', async () => {
    const ids: string[] = []
    for (const account of ['alice', 'bob', 'alice']) {
      site.issuers['sign-in'].state.account = account
      const { browser, back } = await site.begin('sign-in')
      await come(browser, back)
      ids.push((await browser.get('/api/me')).body.user.id)
    }
    site.issuers['sign-in'].state.account = 'alice'
    expect(ids[0]).toBe(ids[2])
    expect(ids[0]).not.toBe(ids[1])
  })

  it('too often from one address is refused, at all instances together', async () => {
    const browser = somebody(site.urls)
    const answers = []
    for (let n = 0; n < 40; n++) answers.push((await browser.fetch('/auth/sign-in')).status)
    expect(answers.slice(0, 20)).toEqual(Array(20).fill(302))
    expect(answers.at(-1)).toBe(429)
    expect((await somebody(site.urls).fetch('/auth/sign-in')).status).toBe(302)
  })
})

describe('in prod', () => {
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
})
