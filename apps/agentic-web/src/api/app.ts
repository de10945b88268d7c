import { createDurablyHandler } from '@coji/durably-server'
import { Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { agentDeclaration } from '../agent/declaration'
import type { ApiConfig } from '../config'
import { demoSignInBodySchema, type Entrance } from '../contract'
import type { Database } from '../database/open'
import type { Log } from '../log'
import { createProvider } from '../oauth/provider'
import { addressOf } from './address'
import { approvalRoutes } from './approvals'
import { readBody } from './body'
import { chatRoutes } from './chat'
import { createCookies, DEMO_USERS, Identity } from './identity'
import { createLimits } from './limits'
import { notFound, RequestError, toRequestError, toResponse } from './problem'
import { connectionRoutes, oauthRoutes } from './oauth'
import { runRoutes, RUNS_PATH } from './runs'
import type { AppContext, AppEnv, Services } from './services'
import { sessionRoutes } from './sessions'
import { listTools, settingsRoutes } from './settings'
import { traceRequests } from './trace-requests'

const MOST_BODY_BYTES = 512 * 1024

/** What a process of the api is made of. */
export function createServices(database: Database, config: ApiConfig, log: Log): Services {
  const { durably, db } = database
  const cookies = createCookies(config)
  const identity = new Identity(db, cookies)
  const { agent } = durably.register({ agent: agentDeclaration })
  const runs = createDurablyHandler(durably, {
    basePath: RUNS_PATH,
    origins: [config.publicUrl],
    linkSecret: config.linkSecret,
    async authorize({ request }) {
      const user = await identity.userOf(request)
      return user === null ? null : { actor: user.id, tenant: user.id, allow: ['read', 'cancel', 'retry'] }
    },
  })
  const limits = createLimits(database, config)
  const { signIn, openai } = config
  const providers = {
    'sign-in': signIn === null ? null : createProvider(signIn, config),
    connect: openai === null ? null : createProvider(openai, config),
  }
  return { ...database, config, agent, runs, identity, cookies, limits, providers, log }
}

/** All routes. Any number of instances serve them, and it does not matter which one is asked. */
export function createApp(services: Services): Hono<AppEnv> {
  const { log } = services
  return new Hono<AppEnv>()
    .onError((error) => {
      const refusal = toRequestError(error)
      if (refusal.code === 'INTERNAL') log('error', 'request failed', { error: error.stack ?? String(error) })
      return toResponse(refusal)
    })
    .notFound(() => toResponse(notFound('address')))
    .get('/healthz', (context) => context.json({ ok: true }))
    .get('/readyz', (context) => answerReadiness(services, context))
    .use('/api/*', traceRequests, noStore, refuseForeignOrigin(services), limitBody)
    .use('/auth/*', traceRequests, noStore)
    .route('/', publicRoutes(services))
    .use('/api/*', requireUser(services))
    .route('/api', userRoutes(services))
}

function publicRoutes(services: Services): Hono<AppEnv> {
  const { runs } = services
  return new Hono<AppEnv>()
    .route('/', oauthRoutes(services))
    .get('/api/entrance', (context) => context.json(entranceOf(services)))
    .post('/api/auth/demo', (context) => signInAsDemo(services, context))
    .get(`${RUNS_PATH}/link`, (context) => runs(context.req.raw))
    .post(`${RUNS_PATH}/link`, (context) => runs(context.req.raw))
}

function userRoutes(services: Services): Hono<AppEnv> {
  const { identity, runs } = services
  return new Hono<AppEnv>()
    .get('/me', (context) => context.json({ user: context.var.user }))
    .post('/auth/sign-out', async (context) => {
      await identity.signOut(context)
      return context.body(null, 204)
    })
    .get('/tools', async (context) => context.json(await listTools(services)))
    .route('/sessions', sessionRoutes(services))
    .route('/runs', runRoutes(services))
    .route('/approvals', approvalRoutes(services))
    .route('/settings', settingsRoutes(services))
    .route('/', connectionRoutes(services))
    .route('/chat', chatRoutes(services))
    .all('/durably/bulk/*', () => toResponse(notFound('address')))
    .all('/durably/bulk', () => toResponse(notFound('address')))
    .all('/durably/*', (context) => runs(context.req.raw))
}

const noStore: MiddlewareHandler = async (context, next) => {
  await next()
  context.res.headers.append('vary', 'Cookie')
  if (!context.res.headers.has('cache-control')) context.res.headers.set('cache-control', 'no-store')
  context.res.headers.set('x-content-type-options', 'nosniff')
}

const limitBody = bodyLimit({
  maxSize: MOST_BODY_BYTES,
  onError: () => toResponse(new RequestError('TOO_LARGE', `A body has ${MOST_BODY_BYTES} bytes at most.`)),
})

/** Pages of other sites do not write with the cookies of who looks at them. Programs without a browser send no Origin. */
function refuseForeignOrigin({ config }: Services): MiddlewareHandler<AppEnv> {
  return async ({ req }, next) => {
    const isWrite = req.method !== 'GET' && req.method !== 'HEAD'
    const origin = req.header('origin')
    const site = req.header('sec-fetch-site')
    const isOwn = origin === undefined ? site === undefined || site === 'same-origin' : origin === config.publicUrl
    // Its page sends no referrer, and so no origin; the handler of the link looks for itself.
    const isLink = req.path === `${RUNS_PATH}/link`
    if (isWrite && !isOwn && !isLink) throw new RequestError('ORIGIN_REFUSED', 'Pages of this origin may not write.')
    await next()
  }
}

function requireUser({ identity }: Services): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const user = await identity.userOf(context.req.raw)
    if (user === null) throw new RequestError('UNAUTHENTICATED', 'Say who you are.')
    context.set('user', user)
    await next()
  }
}

function entranceOf({ config }: Services): Entrance {
  const { profile, demoUsers, signIn } = config
  return { profile, demoUsers: demoUsers ? [...DEMO_USERS] : [], signInPath: signIn === null ? null : '/auth/sign-in' }
}

async function signInAsDemo({ config, identity, limits }: Services, context: AppContext): Promise<Response> {
  if (!config.demoUsers) throw notFound('address')
  await limits.signIn(addressOf(context, config))
  const { user_id } = await readBody(context, demoSignInBodySchema)
  const user = await identity.demoUser(user_id)
  if (user === null) throw notFound('user')
  await identity.signIn(context, user.id)
  return context.json({ user })
}

async function answerReadiness({ db }: Services, context: AppContext): Promise<Response> {
  const isReady = await db
    .selectFrom('users')
    .select('user_id')
    .limit(1)
    .execute()
    .then(
      () => true,
      () => false,
    )
  return context.json({ ok: isReady }, isReady ? 200 : 503)
}
