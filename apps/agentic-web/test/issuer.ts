import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  request as requestHttp,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createSecureServer, request as requestHttps, type RequestOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import type Provider from 'oidc-provider'
import type { Browser } from './deployment'

/** What is done with a request to the token endpoint; `true`: it is answered, one way or another. */
type Fault = (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>

export interface IssuerOptions {
  readonly redirectUris: readonly string[]
  readonly tls?: { readonly key: string; readonly cert: string }
}

export const CLIENT = { id: 'agentic', secret: 'a-secret-of-the-client-that-is-long' }

/** A real OpenID provider, at which everybody is `account` and agrees to everything. */
export async function startIssuer({ redirectUris, tls }: IssuerOptions) {
  const state = { account: 'alice', fault: null as Fault | null, tokenRequests: 0, agrees: true }
  let listener: RequestListener = () => {}
  const answer: RequestListener = (request, response) => void listener(request, response)
  const server = tls === undefined ? createServer(answer) : createSecureServer(tls, answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `${tls === undefined ? 'http' : 'https'}://localhost:${(server.address() as AddressInfo).port}`
  const provider = await openProvider(url, redirectUris)
  const callback = provider.callback()
  listener = async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', url)
    if (pathname.startsWith('/interaction/')) return agree({ provider, request, response }, state)
    if (pathname === '/token') {
      state.tokenRequests += 1
      if (state.fault !== null && (await state.fault(request, response))) return undefined
    }
    return callback(request, response)
  }
  return {
    url,
    state,
    async end() {
      server.close()
      server.closeAllConnections()
    },
  }
}

export type Issuer = Awaited<ReturnType<typeof startIssuer>>

async function openProvider(url: string, redirectUris: readonly string[]): Promise<Provider> {
  const { default: OpenIdProvider } = await imported
  return new OpenIdProvider(url, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [...redirectUris],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    pkce: { required: () => true },
    cookies: { keys: ['for-tests'] },
    features: { devInteractions: { enabled: false }, revocation: { enabled: true, allowedPolicy: async () => true } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    claims: { openid: ['sub'], profile: ['name'] },
    conformIdTokenClaims: false,
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    ttl: {
      AccessToken: 3600,
      AuthorizationCode: 60,
      Grant: 3600,
      IdToken: 3600,
      Interaction: 600,
      RefreshToken: 86_400,
      Session: 3600,
    },
    findAccount: async (_ctx, sub) => ({ accountId: sub, claims: async () => ({ sub, name: `<b>${sub}</b>` }) }),
  })
}

/** It says at once that it does not know this Node well enough. */
async function importQuietly() {
  const { warn } = console
  console.warn = () => {}
  const known = await import('oidc-provider')
  console.warn = warn
  return known
}

const imported = importQuietly()

interface Agreeing {
  readonly account: string
  readonly agrees: boolean
}

interface Interaction {
  readonly provider: Provider
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

async function agree({ provider, request, response }: Interaction, { account, agrees }: Agreeing): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response)
  if (!agrees) {
    const refusal = { error: 'access_denied', error_description: '<script>alert(1)</script>' }
    return provider.interactionFinished(request, response, refusal)
  }
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId: account } })
  }
  const grant = new provider.Grant({ accountId: session?.accountId ?? account, clientId: String(params['client_id']) })
  grant.addOIDCScope(String(params['scope']))
  const grantId = await grant.save()
  return provider.interactionFinished(request, response, { consent: { grantId } }, { mergeWithLastSubmission: true })
}

interface VisitOptions {
  /** Who has signed the certificate of the provider. */
  readonly ca?: string
  readonly returnTo?: string | undefined
}

/** Goes through the pages of the provider as a browser would, until it is sent back to `home`. Gives where to. */
export async function visit(address: string, home: string, { ca }: VisitOptions = {}): Promise<URL> {
  const cookies = new Map<string, string>()
  let url = new URL(address)
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    const { headers, statusCode } = await get(url, { headers: { cookie }, agent: false, ...(ca && { ca }) })
    for (const line of headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    if (headers.location === undefined) throw new Error(`${url} gave ${statusCode}.`)
    url = new URL(headers.location, url)
    if (url.origin === home) return url
  }
  throw new Error('The provider never sent the browser back.')
}

const MOST_HOPS = 12

async function get(url: URL, options: RequestOptions): Promise<IncomingMessage> {
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, options).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  return response
}

/** The address at the provider that a browser is sent to, asked for with whatever else the browser says. */
export async function wayTo(
  browser: Browser,
  purpose: 'sign-in' | 'connect',
  { returnTo, query = {} }: { readonly returnTo?: string | undefined; readonly query?: Record<string, string> } = {},
): Promise<string> {
  const given = new URLSearchParams({
    ...query,
    ...(purpose === 'sign-in' && returnTo !== undefined && { return_to: returnTo }),
  })
  if (purpose === 'sign-in') return (await browser.fetch(`/auth/sign-in?${given}`)).headers.get('location') ?? ''
  return (await browser.post(`/api/oauth/openai/start?${given}`, { return_to: returnTo })).body.url
}

/** The way to the provider, through it, and the address it sends the browser back to. */
export async function wayBack(
  browser: Browser,
  purpose: 'sign-in' | 'connect',
  options: VisitOptions = {},
): Promise<URL> {
  return visit(await wayTo(browser, purpose, options), browser.origin, options)
}
