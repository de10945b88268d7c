import { Hono } from 'hono'
import * as client from 'openid-client'
import type { ApiConfig } from '../config'
import { oauthStartBodySchema } from '../contract'
import { keepConnection, removeConnection, showConnection } from '../oauth/connection'
import type { Purpose } from '../oauth/provider'
import { returnPathOf } from '../oauth/return-path'
import { beginVisit, takeVisit, type Visit } from '../oauth/visits'
import { randomToken } from '../secrets/tokens'
import { addressOf } from './address'
import { readBody } from './body'
import { notFound } from './problem'
import type { AppContext, AppEnv, Services } from './services'

const VISIT_COOKIE = 'visit'
const VISIT_MS = 10 * 60_000

/** Where providers send browsers back to: on this machine where a developer works, on the public address in prod. */
export function callbackPath({ profile }: Pick<ApiConfig, 'profile'>, purpose: Purpose): string {
  if (profile === 'dev-local') return purpose === 'connect' ? '/auth/callback' : '/auth/sign-in/callback'
  return purpose === 'connect' ? '/api/oauth/openai/callback' : '/api/oauth/sign-in/callback'
}

/** Why a visit came to nothing: all that the page is told. */
type Failure = 'state' | 'denied' | 'provider' | 'account'

/** For who is not signed in: the way in, and the ways back. */
export function oauthRoutes(services: Services): Hono<AppEnv> {
  const { config } = services
  return new Hono<AppEnv>()
    .get('/auth/sign-in', async (context) => {
      const returnTo = context.req.query('return_to')
      return context.redirect(await begin(services, context, { purpose: 'sign-in', userId: null, returnTo }))
    })
    .get(callbackPath(config, 'sign-in'), (context) => comeBack(services, context, 'sign-in'))
    .get(callbackPath(config, 'connect'), (context) => comeBack(services, context, 'connect'))
}

/** For who is signed in: the account at the model provider. */
export function connectionRoutes(services: Services): Hono<AppEnv> {
  const { db, providers } = services
  return new Hono<AppEnv>()
    .post('/oauth/openai/start', async (context) => {
      const { return_to: returnTo } = await readBody(context, oauthStartBodySchema)
      const { id: userId } = context.var.user
      return context.json({ url: await begin(services, context, { purpose: 'connect', userId, returnTo }) })
    })
    .get('/connection', async (context) => {
      return context.json(await showConnection(db, context.var.user.id, providers.connect !== null))
    })
    .delete('/connection', async (context) => {
      await removeConnection(services, context.var.user.id, providers.connect)
      return context.body(null, 204)
    })
}

interface Beginning {
  readonly purpose: Purpose
  readonly userId: string | null
  readonly returnTo: string | undefined
}

async function begin(
  services: Services,
  context: AppContext,
  { purpose, userId, returnTo }: Beginning,
): Promise<string> {
  const { config, cookies, limits } = services
  const provider = providerFor(services, purpose)
  await limits.signIn(addressOf(context, config))
  // Two tabs of one browser may be on their way at the same time.
  const browserToken = cookies.read(context.req.raw, VISIT_COOKIE) ?? randomToken()
  const url = await beginVisit(services, {
    ...{ provider, purpose, browserToken, userId },
    redirectUri: `${config.publicUrl}${callbackPath(config, purpose)}`,
    returnPath: returnPathOf(returnTo),
  })
  cookies.write(context, VISIT_COOKIE, { value: browserToken, maxAgeMs: VISIT_MS })
  return url.href
}

function providerFor({ providers }: Services, purpose: Purpose) {
  const provider = providers[purpose]
  if (provider === null) throw notFound('provider')
  return provider
}

async function comeBack(services: Services, context: AppContext, purpose: Purpose): Promise<Response> {
  const { config, cookies, log } = services
  const provider = providerFor(services, purpose)
  const redirectUri = `${config.publicUrl}${callbackPath(config, purpose)}`
  const parameters = new URL(context.req.url).searchParams
  const state = onlyOne(parameters, 'state')
  const browserToken = cookies.read(context.req.raw, VISIT_COOKIE)
  const known = state !== null && browserToken !== null && !hasTwice(parameters)
  const visit = known ? await takeVisit(services, { state, provider, purpose, redirectUri, browserToken }) : null
  if (state === null || visit === null) return lead(services, context, { path: '/', failure: 'state' })
  // What the request says of its host is nothing to go by.
  const currentUrl = new URL(`${redirectUri}?${parameters}`)
  try {
    const grant = await client.authorizationCodeGrant(await provider.configuration(), currentUrl, {
      expectedState: state,
      pkceCodeVerifier: visit.verifier(),
      ...(provider.scope.split(' ').includes('openid') && { expectedNonce: visit.nonce, idTokenExpected: true }),
    })
    const failure = await accept(services, context, { purpose, visit, grant })
    return lead(services, context, { path: visit.returnPath, failure, purpose })
  } catch (error) {
    const isDenied = error instanceof client.AuthorizationResponseError && error.error === 'access_denied'
    if (!isDenied) log('warn', 'a visit to a provider failed', { purpose, error: String(Object(error).code ?? error) })
    return lead(services, context, { path: visit.returnPath, failure: isDenied ? 'denied' : 'provider' })
  }
}

function onlyOne(parameters: URLSearchParams, name: string): string | null {
  const all = parameters.getAll(name)
  return all.length === 1 ? (all[0] ?? null) : null
}

function hasTwice(parameters: URLSearchParams): boolean {
  return new Set(parameters.keys()).size !== [...parameters.keys()].length
}

interface Accepted {
  readonly purpose: Purpose
  readonly visit: Visit
  readonly grant: Awaited<ReturnType<typeof client.authorizationCodeGrant>>
}

async function accept(
  services: Services,
  context: AppContext,
  { purpose, visit, grant }: Accepted,
): Promise<Failure | null> {
  const { identity, providers } = services
  const { issuer = '' } = providers[purpose] ?? {}
  if (purpose === 'sign-in') {
    const claims = grant.claims()
    if (claims === undefined) return 'provider'
    const name = claims['name'] ?? claims['preferred_username'] ?? claims['email']
    const user = await identity.knownAs(typeof name === 'string' ? name : claims.sub, { issuer, subject: claims.sub })
    await identity.signIn(context, user.id)
    return null
  }
  // Somebody else may have signed in meanwhile, in the same browser.
  const user = await identity.userOf(context.req.raw)
  if (user === null || user.id !== visit.userId) return 'account'
  await keepConnection(services, { userId: user.id, issuer, grant })
  return null
}

interface Lead {
  readonly path: string
  readonly failure: Failure | null
  readonly purpose?: Purpose
}

/** Back to the page, with a word of our own: nothing that came with the request is shown to anybody. */
function lead({ config }: Services, context: AppContext, { path, failure, purpose }: Lead): Response {
  const url = new URL(path, config.publicUrl)
  if (failure !== null) url.searchParams.set('oauth_error', failure)
  else if (purpose === 'connect') url.searchParams.set('connected', '1')
  context.header('referrer-policy', 'no-referrer')
  return context.redirect(url.href, 303)
}
