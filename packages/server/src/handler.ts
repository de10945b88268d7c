import { NotFoundError, type Durably } from '@coji/durably-core'
import type { z } from 'zod'
import { admit, admitTo, NOBODY } from './access'
import { readBody } from './body'
import { BULK_JOB, bulkJob } from './bulk'
import { toSettings, type HandlerOptions } from './options'
import { refuseForeignOrigin } from './origin'
import { HttpProblem, problem, toProblem } from './problem'
import { readQuery } from './query'
import { createRouter, type Call, type Route, type RunCall } from './route'
import { ROUTES } from './routes'
import { createServer, type Server } from './server'
import type { Problem } from './wire'

/** Answers requests; mounts wherever a `Request` and a `Response` are known. */
export type DurablyHandler = (request: Request) => Promise<Response>

/**
 * Serves the runs of an instance over HTTP.
 *
 * ```ts
 * const handler = createDurablyHandler(durably, {
 *   basePath: '/api/durably',
 *   authorize: async ({ request }) => {
 *     const user = await userOf(request)
 *     return user && { actor: user.email, tenant: user.company, allow: user.isAdmin ? 'all' : 'read' }
 *   },
 * })
 * ```
 */
export function createDurablyHandler(durably: Durably, options: HandlerOptions): DurablyHandler {
  const server = createServer(durably, toSettings(options))
  if (server.settings.bulk && !durably.jobs().some(({ name }) => name === BULK_JOB))
    durably.register({ bulk: bulkJob(durably) })
  return async (request) => {
    try {
      return await respond(server, request)
    } catch (error) {
      return refuse(durably, error)
    }
  }
}

const findRoute = createRouter(ROUTES)

async function respond(server: Server, request: Request): Promise<Response> {
  const url = new URL(request.url)
  const { routes, id } = destinationOf(server, url)
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const route = routes.find((each) => each.method === method)
  if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers: allowing(routes) })
  if (route === undefined) return refuseMethod(request, routes)
  if (route.method !== 'GET') refuseForeignOrigin(request, server.settings)
  const { action } = route
  const access = action === null ? NOBODY : await admit(server, { request, action })
  const query = check(route.query, readQuery(url.searchParams), 'query')
  const isJson = route.method !== 'GET' && action !== null
  const body = isJson ? check(route.body, await readBody(request, server.settings), 'body') : undefined
  const call: Call = { server, access, request, query, body }
  return answer(route, id === null ? call : await aboutRun(call, { route, id }))
}

function destinationOf({ settings: { basePath } }: Server, { pathname }: URL) {
  const isWithin = basePath === '' || pathname === basePath || pathname.startsWith(`${basePath}/`)
  const found = isWithin ? findRoute(pathname.slice(basePath.length)) : null
  if (found !== null) return found
  throw new HttpProblem('NO_SUCH_ROUTE', 'There is nothing at this address.')
}

function refuseMethod({ method }: Request, routes: readonly Route[]): Response {
  const known = methodsOf(routes)
  const response = toResponse(problem('METHOD_NOT_ALLOWED', `${method} is not possible here; ${known} is.`))
  response.headers.set('allow', known)
  return response
}

function allowing(routes: readonly Route[]): Record<string, string> {
  return { allow: methodsOf(routes) }
}

function methodsOf(routes: readonly Route[]): string {
  return routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
}

/** What a route does not take is not overlooked. */
function check(schema: z.ZodType | null, given: unknown, what: 'query' | 'body'): unknown {
  if (schema === null) {
    if (given === undefined || Object.keys(Object(given)).length === 0) return undefined
    throw new HttpProblem('INVALID_REQUEST', `There is no ${what} to this request.`)
  }
  const result = schema.safeParse(given)
  if (result.success) return result.data
  const issues = result.error.issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message }))
  const words = issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
  throw new HttpProblem('INVALID_REQUEST', `The ${what} makes no sense: ${words.join('; ')}`, issues)
}

async function aboutRun(call: Call, { route, id }: { readonly route: Route; readonly id: string }): Promise<RunCall> {
  const { access, server, request } = call
  const { action } = route
  const run = await access.runs.getRun(id)
  if (run === null) throw NotFoundError.run(id)
  if (action !== null) await admitTo(server, { request, action, run })
  return { ...call, run }
}

async function answer(route: Route, call: Call | RunCall): Promise<Response> {
  const given = await route.answer(call)
  const isHead = call.request.method === 'HEAD'
  if (given instanceof Response) return isHead ? withoutBody(given) : given
  if (route.output === null) return new Response(null, { status: route.status })
  return new Response(isHead ? null : JSON.stringify(given), { status: route.status, headers: JSON_HEADERS })
}

async function withoutBody(response: Response): Promise<Response> {
  await response.body?.cancel()
  return new Response(null, response)
}

/** Runs change, and who may see them too. */
const JSON_HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const

function refuse(durably: Durably, error: unknown): Response {
  const known = toProblem(error)
  if (known !== null) return toResponse(known)
  durably.reportError(error, 'answer a request')
  return toResponse(problem('INTERNAL', 'Something went wrong on the server, which has its own record of it.'))
}

function toResponse(given: Problem): Response {
  const headers = { ...JSON_HEADERS, 'content-type': 'application/problem+json' }
  const response = new Response(JSON.stringify(given), { status: given.status, headers })
  if (given.status === 503) response.headers.set('retry-after', '1')
  return response
}
