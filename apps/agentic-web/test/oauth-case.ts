import { expect } from 'vitest'
import { wayBack } from './issuer'
import { come, isIn, type OAuthSite, type Purpose, PURPOSES, refused } from './oauth-site'

/** Fails unless OAuth is refused, or let through, as it has to be. */
export type Check = (site: OAuthSite, purpose: Purpose) => Promise<void>

export interface OAuthCase {
  readonly name: string
  /** What a provider is used for where it can happen. */
  readonly uses: readonly Purpose[]
  readonly check: Check
}

export const both = (name: string, check: Check): OAuthCase => ({ name, uses: PURPOSES, check })
export const ofAccounts = (name: string, check: Check): OAuthCase => ({ name, uses: ['connect'], check })
export const ofSettings = (name: string, check: Check): OAuthCase => ({ name, uses: ['sign-in'], check })

export type Begun = Awaited<ReturnType<OAuthSite['begin']>>

/** Gives the address to come back to, instead of the one of the provider. */
export type Breaking = (site: OAuthSite, begun: Begun, purpose: Purpose) => URL | Promise<URL>

/** Comes back so that it is no visit of this browser: no provider is asked about it. */
export const noVisit = (name: string, breakIt: Breaking): OAuthCase =>
  both(name, async (site, purpose) => {
    const { state } = site.issuers[purpose]
    const begun = await site.begin(purpose)
    const address = await breakIt(site, begun, purpose)
    const before = state.tokenRequests
    expect(await come(begun.browser, address)).toMatchObject(refused('state'))
    expect(state.tokenRequests).toBe(before)
    expect(await isIn(begun.browser, purpose)).toBe(false)
  })

/** Comes back so that what the provider says does not hold: the visit is over, and leads to where it was begun. */
export const failing = (name: string, spoil: Breaking): OAuthCase =>
  both(name, async (site, purpose) => {
    const begun = await site.begin(purpose, '/there')
    const address = await spoil(site, begun, purpose)
    expect(await come(begun.browser, address)).toMatchObject(refused('provider', '/there'))
    await expectOver(begun, purpose)
  })

/** It came to nothing, comes to nothing when it is sent again, and another one can begin. */
export async function expectOver({ browser, back }: Begun, purpose: Purpose): Promise<void> {
  expect(await isIn(browser, purpose)).toBe(false)
  expect(await come(browser, back)).toMatchObject(refused('state'))
  expect((await come(browser, await wayBack(browser, purpose))).location).not.toContain('oauth_error')
}
