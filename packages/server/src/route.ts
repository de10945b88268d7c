import type { Run } from '@coji/durably-core'
import type { z } from 'zod'
import type { Access } from './access'
import type { Server } from './server'
import type { Action } from './wire'
import type { Messages } from './wire-events'

export type Method = 'GET' | 'POST' | 'DELETE'

/** A request that was admitted, with its parts checked. */
export interface Call<TQuery = unknown, TBody = unknown> {
  readonly server: Server
  readonly access: Access
  readonly request: Request
  readonly query: TQuery
  readonly body: TBody
}

/** One about a run, which is there and may be seen. */
export interface RunCall<TQuery = unknown, TBody = unknown> extends Call<TQuery, TBody> {
  readonly run: Run
}

/** One line of the table: dispatch, authorisation, checks, the OpenAPI document and the tests are made from it. */
export interface Route {
  readonly method: Method
  /** `/runs/:id/cancel`; `:id` is the id of a run, and the only part that is not fixed. */
  readonly path: string
  /** `null`: the address itself is the permission, and a form of a page its body. */
  readonly action: Action | null
  readonly summary: string
  readonly query: z.ZodType | null
  readonly body: z.ZodType | null
  readonly status: number
  /** JSON, server-sent events, `page`: HTML, or `null`: nothing. */
  readonly output: z.ZodType | Messages | 'page' | null
  readonly isAboutRun: boolean
  /** What is answered as JSON, or the whole answer. */
  answer(call: Call | RunCall): Promise<unknown>
}

interface RouteOptions<TQuery extends z.ZodType, TBody extends z.ZodType> {
  readonly method: Method
  readonly path: string
  readonly action: Action | null
  readonly summary: string
  readonly query?: TQuery
  readonly body?: TBody
  readonly status?: number
  readonly output: Route['output']
}

export function route<TQuery extends z.ZodType = z.ZodUndefined, TBody extends z.ZodType = z.ZodUndefined>(
  options: RouteOptions<TQuery, TBody> & {
    readonly answer: (call: Call<z.output<TQuery>, z.output<TBody>>) => Promise<unknown>
  },
): Route {
  return toRoute(options, false)
}

export function runRoute<TQuery extends z.ZodType = z.ZodUndefined, TBody extends z.ZodType = z.ZodUndefined>(
  options: RouteOptions<TQuery, TBody> & {
    readonly answer: (call: RunCall<z.output<TQuery>, z.output<TBody>>) => Promise<unknown>
  },
): Route {
  return toRoute(options, true)
}

function toRoute(
  options: RouteOptions<z.ZodType, z.ZodType> & { readonly answer: (call: never) => Promise<unknown> },
  isAboutRun: boolean,
): Route {
  const { query = null, body = null, status = 200, answer } = options
  // What it is called with was checked by its own schemas.
  return { ...options, query, body, status, isAboutRun, answer: answer as Route['answer'] }
}

/** Where a path leads: the routes by method, and the id in it. */
export interface Destination {
  readonly routes: readonly Route[]
  readonly id: string | null
}

/** Two parts with an id between them, so that a path is found by one look. */
export function createRouter(table: readonly Route[]): (path: string) => Destination | null {
  const byPath = new Map<string, Route[]>()
  for (const each of table) byPath.set(each.path, [...(byPath.get(each.path) ?? []), each])
  const fixed = (path: string) => (path.includes(':') ? undefined : byPath.get(path))
  return (path) => {
    const exact = fixed(path)
    if (exact !== undefined) return { routes: exact, id: null }
    const [, first, encoded, rest = ''] = /^(\/[^/]+)\/([^/]+)(\/[^/]+)?$/.exec(path) ?? []
    if (first === undefined || encoded === undefined) return null
    const routes = byPath.get(`${first}/:id${rest}`)
    return routes === undefined ? null : { routes, id: decode(encoded) }
  }
}

/** What is no encoding is the id of no run either. */
function decode(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}
