import { expect, vi } from 'vitest'
import { placeOfVerifier } from '../src/oauth/place'
import { PUBLIC_URL } from './deployment'
import { type Issuer, visit, wayBack, wayTo } from './issuer'
import { type Breaking, type Check, expectOver } from './oauth-case'
import { CALLBACKS, changed, come, isIn, type Purpose, refused, stateOf } from './oauth-site'

export const usedTwice: Check = async (site, purpose) => {
  const { browser, back } = await site.begin(purpose)
  expect((await come(browser, back)).location).not.toContain('oauth_error')
  expect(await come(browser, back)).toMatchObject(refused('state'))
}

export const usedByMany: Check = async (site, purpose) => {
  const { browser, back } = await site.begin(purpose)
  const before = site.issuers[purpose].state.tokenRequests
  const all = await Promise.all(Array.from({ length: 50 }, () => come(browser, back)))
  expect(all.filter(({ location }) => location?.includes('oauth_error') === false)).toHaveLength(1)
  expect(site.issuers[purpose].state.tokenRequests).toBe(before + 1)
}

export const withoutCookie: Breaking = (_site, { browser, back }) => {
  browser.cookies.delete('visit')
  return back
}

export const withAnotherCookie: Breaking = (_site, { browser, back }) => {
  browser.cookies.set('visit', 'x'.repeat(43))
  return back
}

export const ofSomebodyElseByNow: Check = async (site) => {
  const { browser, back } = await site.begin('connect')
  await browser.be('grace')
  expect(await come(browser, back)).toMatchObject(refused('account'))
  expect(await isIn(browser, 'connect')).toBe(false)
  const { browser: second, back: later } = await site.begin('connect')
  await second.post('/api/auth/sign-out')
  expect(await come(second, later)).toMatchObject(refused('account'))
}

export const aSecondTooLate: Breaking = async (site, { browser, back }, purpose) => {
  const issuer = site.issuers[purpose]
  expect(await site.takenAt(back, { browser, purpose, issuer, secondsLeft: -1 })).toBeNull()
  return back
}

export const aSecondInTime: Check = async (site, purpose) => {
  const { browser, back } = await site.begin(purpose, '/there')
  const issuer = site.issuers[purpose]
  const taken = await site.takenAt(back, { browser, purpose, issuer, secondsLeft: 1 })
  expect(taken).toMatchObject({ returnPath: '/there' })
}

const otherOf = (purpose: Purpose): Purpose => (purpose === 'connect' ? 'sign-in' : 'connect')

function withCodeOf(back: URL, other: URL): URL {
  return changed(back, (each) => each.set('code', other.searchParams.get('code') ?? ''))
}

export const codeOfTheOtherProvider: Breaking = async (site, { back }, purpose) => {
  return withCodeOf(back, (await site.begin(otherOf(purpose))).back)
}

export const otherCallback: Breaking = (_site, { back }, purpose) => {
  return new URL(`${CALLBACKS[otherOf(purpose)]}${back.search}`, PUBLIC_URL)
}

export const otherProviderBefore: Breaking = async (site, { back }) => {
  await site.rowsChanged(back, { issuer: 'http://before.test' })
  return back
}

export const wrongVerifier: Breaking = async (site, { back }) => {
  const { vault } = site.database
  await site.rowsChanged(back, { verifier: vault.seal('w'.repeat(43), placeOfVerifier(stateOf(back))) })
  return back
}

/** Somebody on the way changes what the provider is asked for. */
export const weakened =
  (weaken: (parameters: URLSearchParams) => void): Check =>
  async (site, purpose) => {
    const browser = await site.browserFor(purpose)
    if (purpose === 'connect') await browser.send('DELETE', '/api/connection')
    const address = changed(new URL(await wayTo(browser, purpose)), weaken)
    const back = await visit(address.href, PUBLIC_URL)
    expect(await come(browser, back)).toMatchObject(refused('provider'))
    await expectOver({ browser, back }, purpose)
  }

export const usedCode: Breaking = async (site, { back }, purpose) => {
  const { browser, back: other } = await site.begin(purpose)
  await come(browser, other)
  if (purpose === 'connect') await browser.send('DELETE', '/api/connection')
  return withCodeOf(back, other)
}

export const codeOfSomebodyElse: Breaking = async (site, { back }, purpose) => {
  return withCodeOf(back, (await site.begin(purpose)).back)
}

export const atTheOtherInstance: Check = async (site, purpose) => {
  const [first = '', second = ''] = site.urls
  const browser = await site.browserFor(purpose)
  browser.urls = [first]
  const back = await wayBack(browser, purpose, { returnTo: '/settings?tab=model' })
  browser.urls = [second]
  const connected = purpose === 'connect' ? '&connected=1' : ''
  const location = `${PUBLIC_URL}/settings?tab=model${connected}`
  expect(await come(browser, back)).toMatchObject({ status: 303, location })
  expect(await isIn(browser, purpose)).toBe(true)
  if (purpose === 'sign-in') expect((await browser.get('/api/me')).body.user.name).toBe('<b>alice</b>')
}

/** The state was used when the provider is asked for tokens, and does not answer as it should. */
const failingAfterTheState =
  (fault: Issuer['state']['fault']): Check =>
  async (site, purpose) => {
    const { state } = site.issuers[purpose]
    const begun = await site.begin(purpose)
    state.fault = fault
    expect(await come(begun.browser, begun.back)).toMatchObject(refused('provider'))
    state.fault = null
    await expectOver(begun, purpose)
  }

export const answering500 = failingAfterTheState((_request, response) => Boolean(response.writeHead(500).end('<b>')))

const TIME_OF_PROVIDERS_MS = 10_000

export const answeringTooLate: Check = async (site, purpose) => {
  const time = hurryable(TIME_OF_PROVIDERS_MS)
  const isHeldUp = () => {
    time.isOver()
    return true
  }
  await failingAfterTheState(isHeldUp)(site, purpose)
  expect(time.limits()).toBeGreaterThan(0)
}

/** Time limits of just this length are over when a test says so, once. */
function hurryable(ms: number) {
  const limit = new AbortController()
  const timeout = AbortSignal.timeout.bind(AbortSignal)
  let limits = 0
  const spy = vi.spyOn(AbortSignal, 'timeout').mockImplementation((given) => {
    if (given !== ms) return timeout(given)
    limits += 1
    return limit.signal
  })
  return {
    limits: () => limits,
    isOver() {
      spy.mockRestore()
      limit.abort(new DOMException('The time is over.', 'TimeoutError'))
    },
  }
}

export const scriptInItsWords: Check = async (site, purpose) => {
  const { state } = site.issuers[purpose]
  state.agrees = false
  const { browser, back } = await site.begin(purpose)
  state.agrees = true
  expect(back.searchParams.get('error_description')).toContain('<script>')
  const answer = await come(browser, back)
  expect(answer).toMatchObject(refused('denied'))
  expect(answer.text).not.toContain('script')
}
