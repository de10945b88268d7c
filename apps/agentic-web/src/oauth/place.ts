import type { Place } from '../secrets/vault'

export function placeOfTokens(userId: string, provider: string): Place {
  return { table: 'auth', column: 'tokens', row: `${userId}/${provider}` }
}

export function placeOfVerifier(stateHash: string): Place {
  return { table: 'oauth_state', column: 'verifier', row: stateHash }
}
