import { ConflictError, DurablyError, NotFoundError, StorageError, ValidationError } from '@coji/durably'
import type { z } from 'zod'
import type { Problem } from '../contract'

const STATUS = {
  INVALID_REQUEST: 400,
  UNAUTHENTICATED: 401,
  ORIGIN_REFUSED: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  TOO_LARGE: 413,
  VALIDATION: 422,
  TOO_MANY: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
} as const

/** What a request is refused with. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: keyof typeof STATUS
  readonly issues: Problem['issues']
  readonly retryAfterSeconds: number | null

  constructor(
    code: keyof typeof STATUS,
    detail: string,
    { issues, retryAfterSeconds = null }: { issues?: Problem['issues']; retryAfterSeconds?: number | null } = {},
  ) {
    super(detail)
    this.code = code
    this.issues = issues
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** What is somebody else's is as if it were not there. */
export function notFound(what: string): RequestError {
  return new RequestError('NOT_FOUND', `There is no such ${what}.`)
}

export function invalid(what: string, error: z.ZodError, code: 'INVALID_REQUEST' | 'VALIDATION' = 'INVALID_REQUEST') {
  const issues = error.issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message }))
  const words = issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
  return new RequestError(code, `The ${what} makes no sense: ${words.join('; ')}`, { issues })
}

/** What is not the fault of who asks is told without details. */
export function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error
  if (error instanceof NotFoundError) return notFound('run')
  if (error instanceof ConflictError) return new RequestError('CONFLICT', error.message)
  if (error instanceof ValidationError) return new RequestError('VALIDATION', error.message)
  if (error instanceof StorageError || isOfConnection(error)) {
    return new RequestError('UNAVAILABLE', 'The database is away at the moment.', { retryAfterSeconds: 1 })
  }
  if (error instanceof DurablyError && error.code === 'CLOSED') {
    return new RequestError('UNAVAILABLE', 'This instance is going away.', { retryAfterSeconds: 1 })
  }
  return new RequestError('INTERNAL', 'Something went wrong on the server, which has its own record of it.')
}

/** What `pg` says when the server is away, full or going: of the system, or by the classes of Postgres. */
function isOfConnection(error: unknown): boolean {
  const { code = '', message = '' } = Object(error) as { readonly code?: unknown; readonly message?: unknown }
  return /^(E[A-Z]+$|08|53|57P)/.test(String(code)) || /connection (terminated|timeout)/i.test(String(message))
}

export function toResponse({ code, message, issues, retryAfterSeconds }: RequestError): Response {
  const status = STATUS[code]
  const body: Problem = { code, status, detail: message, ...(issues !== undefined && { issues }) }
  const headers = new Headers({
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  if (retryAfterSeconds !== null) headers.set('retry-after', String(retryAfterSeconds))
  return new Response(JSON.stringify(body), { status, headers })
}
