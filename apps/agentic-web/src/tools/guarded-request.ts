import { lookup } from 'node:dns/promises'
import { type IncomingMessage, request as requestHttp, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { isPublicAddress } from './public-address'

/** What a name stands for. */
export type Resolve = (hostname: string) => Promise<{ readonly address: string; readonly family: number }>

export interface GuardedRequest extends Pick<RequestOptions, 'method' | 'headers'> {
  readonly signal: AbortSignal
  readonly body?: string
  readonly resolve?: Resolve
}

/**
 * Asks an allowed address, and connects to the very one that was checked: a second answer of the name server would be
 * another one. No redirect is followed here, nothing is unpacked.
 */
export async function guardedRequest(url: URL, options: GuardedRequest): Promise<IncomingMessage> {
  const { address, family } = await addressOf(url.hostname, options.resolve ?? lookup)
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  return await new Promise((resolve, reject) => {
    const sent = request(url, {
      agent: false,
      signal: options.signal,
      method: options.method ?? 'GET',
      lookup: (_host, { all }, done) => (all ? done(null, [{ address, family }]) : done(null, address, family)),
      headers: { 'user-agent': 'durably-agent', 'accept-encoding': 'identity', ...options.headers },
    })
    sent.once('response', resolve).once('error', reject).end(options.body)
  })
}

/** Who lists `localhost` or an address means it. Where any other name leads is in the hands of others. */
async function addressOf(hostname: string, resolve: Resolve) {
  const bare = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(bare)
  if (family !== 0) return { address: bare, family }
  const found = await resolve(bare)
  if (bare === 'localhost' || isPublicAddress(found.address)) return found
  throw new Error(`${hostname} is at ${found.address}, which is not on the public internet.`)
}
