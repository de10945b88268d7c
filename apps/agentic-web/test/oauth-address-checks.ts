import { expect } from 'vitest'
import { readApiConfig } from '../src/config'
import { ENV, PUBLIC_URL } from './deployment'
import { visit, wayTo } from './issuer'
import type { Check } from './oauth-case'
import { askAsHost, CALLBACKS, come, isIn } from './oauth-site'

interface Leading {
  readonly given: string
  /** The page of this site that it may lead to. */
  readonly to?: string
}

/** Given as `return_to`, and as `redirect_uri`, which is nobody's to give. */
export const leadsNowhereElse =
  ({ given, to = '/' }: Leading): Check =>
  async (site, purpose) => {
    const browser = await site.browserFor(purpose)
    const address = await wayTo(browser, purpose, { returnTo: given, query: { redirect_uri: given } })
    expect(new URL(address).searchParams.get('redirect_uri')).toBe(`${PUBLIC_URL}${CALLBACKS[purpose]}`)
    const { location } = await come(browser, await visit(address, PUBLIC_URL))
    const url = new URL(location ?? '')
    url.searchParams.delete('connected')
    expect(url.href).toBe(`${PUBLIC_URL}${to}`)
  }

const START = {
  'sign-in': { method: 'GET', path: '/auth/sign-in' },
  connect: { method: 'POST', path: '/api/oauth/openai/start' },
} as const

/** What a request says of its host is asked of nobody, neither on the way there nor back. */
export const poisoned =
  (poison: Readonly<Record<string, string>>): Check =>
  async (site, purpose) => {
    const [first = '', second = ''] = site.urls
    const browser = await site.browserFor(purpose)
    const headers = { ...poison, 'content-type': 'application/json' }
    const address = await askAsHost(browser, { url: first, ...START[purpose], headers })
    expect(new URL(address).searchParams.get('redirect_uri')).toBe(`${PUBLIC_URL}${CALLBACKS[purpose]}`)
    const { pathname, search } = await visit(address, PUBLIC_URL)
    const home = await askAsHost(browser, { url: second, method: 'GET', path: `${pathname}${search}`, headers })
    expect(home).toBe(`${PUBLIC_URL}/${purpose === 'connect' ? '?connected=1' : ''}`)
    expect(await isIn(browser, purpose)).toBe(true)
  }

export const PROD = {
  ...ENV,
  PROFILE: 'prod',
  DATABASE_URL: 'postgres://localhost/app',
  PUBLIC_URL: 'https://chat.example.com',
  DEMO_USERS: '0',
  SIGN_IN_ISSUER: 'https://id.example.com',
  SIGN_IN_CLIENT_ID: 'chat',
}

const LOOPBACKS = [
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
]

export const loopbackInProd: Check = async () => {
  expect(readApiConfig(PROD).publicUrl).toBe('https://chat.example.com')
  for (const publicUrl of LOOPBACKS) {
    expect(() => readApiConfig({ ...PROD, PUBLIC_URL: publicUrl }), publicUrl).toThrow('a loopback address in prod')
  }
}
