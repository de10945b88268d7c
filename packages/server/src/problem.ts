import { ConflictError, DurablyError, ValidationError, type StorageErrorCode } from '@coji/durably-core'
import type { Problem } from './wire'

/** Codes of the handler's own, beside those of the engine. */
export type ProblemCode =
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'ORIGIN_REFUSED'
  | 'NO_SUCH_ROUTE'
  | 'METHOD_NOT_ALLOWED'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'INVALID_REQUEST'
  | 'BODY_TOO_LARGE'
  | 'NOT_FOUND'
  | 'NOT_SERVED'

const OF_THE_HANDLER: Readonly<Record<ProblemCode, number>> = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  ORIGIN_REFUSED: 403,
  NO_SUCH_ROUTE: 404,
  METHOD_NOT_ALLOWED: 405,
  UNSUPPORTED_MEDIA_TYPE: 415,
  INVALID_REQUEST: 400,
  BODY_TOO_LARGE: 413,
  NOT_FOUND: 404,
  NOT_SERVED: 501,
}

const OF_THE_STORAGE: Readonly<Record<StorageErrorCode, number>> = {
  STORAGE_BUSY: 503,
  STORAGE_UNAVAILABLE: 503,
  STORAGE_CANNOT_OPEN: 503,
  STORAGE_CLOSED: 503,
  STORAGE_READONLY: 503,
  STORAGE_FULL: 507,
  STORAGE_CORRUPT: 503,
  STORAGE_HELD: 503,
  STORAGE_REJECTED: 422,
  STORAGE_NO_ANSWER: 503,
  CONNECTION_HELD: 503,
  TRANSACTION_TIMEOUT: 503,
}

/** The one place that knows which code is which status. */
const STATUS_OF: Readonly<Record<string, number>> = {
  ...OF_THE_HANDLER,
  ...OF_THE_STORAGE,
  INVALID_OPTION: 400,
  CONFLICT: 409,
  HISTORY_REQUIRED: 409,
  LOGS_UNAVAILABLE: 410,
  PAYLOAD_TOO_LARGE: 413,
  VALIDATION: 422,
  SERIALIZATION: 422,
  CAPABILITY_MISSING: 501,
  CLOSED: 503,
  NOT_MIGRATED: 503,
  SCHEMA_TOO_NEW: 503,
  UNKNOWN_OUTCOME: 503,
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  410: 'Gone',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  507: 'Insufficient Storage',
}

/** What ends a request, as the answer to it. */
export class HttpProblem extends Error {
  readonly code: ProblemCode
  readonly issues: Problem['issues']

  constructor(code: ProblemCode, detail: string, issues?: Problem['issues']) {
    super(detail)
    this.code = code
    this.issues = issues
  }
}

/** `null` for what is nobody's business but that of who runs the server. */
export function toProblem(error: unknown): Problem | null {
  if (error instanceof HttpProblem) return problem(error.code, error.message, { issues: error.issues })
  if (!(error instanceof DurablyError) || STATUS_OF[error.code] === undefined) return null
  if (error instanceof ValidationError) return problem(error.code, error.message, { issues: [...error.issues] })
  if (error instanceof ConflictError) {
    return problem(error.code, error.message, { runId: error.runId, runStatus: error.status })
  }
  // A message of a driver may tell of hosts and files.
  if (statusOf(error.code) >= 503) return problem(error.code, 'The database cannot do this now. Try again later.')
  return problem(error.code, error.message)
}

export function problem(code: string, detail: string, more: Partial<Problem> = {}): Problem {
  const status = statusOf(code)
  const given = Object.entries(more).filter(([, value]) => value !== undefined)
  return { type: 'about:blank', title: TITLES[status] ?? 'Error', status, detail, code, ...Object.fromEntries(given) }
}

function statusOf(code: string): number {
  return STATUS_OF[code] ?? 500
}
