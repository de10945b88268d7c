import * as client from 'openid-client'
import type { Config, OAuthProvider } from '../config'

const TIMEOUT_S = 10

/** Where a visit goes, and what it is for. */
export type Purpose = 'sign-in' | 'connect'

/** A provider as its own description has it. */
export interface Provider {
  readonly issuer: string
  readonly scope: string
  /** Asked once, at the first use; again after it could not be had. */
  configuration(): Promise<client.Configuration>
}

export function createProvider(given: OAuthProvider, { profile }: Pick<Config, 'profile'>): Provider {
  let known: Promise<client.Configuration> | null = null
  return {
    issuer: given.issuer,
    scope: given.scope,
    configuration() {
      known ??= discover(given, profile).catch((error) => {
        known = null
        throw error
      })
      return known
    },
  }
}

function discover({ issuer, clientId, clientSecret }: OAuthProvider, profile: Config['profile']) {
  const secret = clientSecret ?? undefined
  const method = clientSecret === null ? client.None() : undefined
  // Providers of a developer's own speak http. In prod nothing does.
  const execute = profile === 'dev-local' ? [client.allowInsecureRequests] : []
  return client.discovery(new URL(issuer), clientId, secret, method, { execute, timeout: TIMEOUT_S })
}
