import {
  ConflictError,
  DurablyError,
  HistoryRequiredError,
  InvalidOptionError,
  NotFoundError,
  ValidationError,
} from '@coji/durably-core'
import type { Problem } from '../wire'

/** The server refused, or failed: `status` is that of HTTP, `code` that of the engine or the handler. */
export class ServerError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'ServerError' }
  override readonly name: string = 'ServerError'
  readonly status: number

  constructor(code: string, message: string, status: number) {
    super(code, message)
    this.status = status
  }
}

/** The server could not be reached, or did not answer. What was only to be read can be asked for again. */
export class UnreachableError extends DurablyError {
  static override readonly 'durably:error' = { kind: 'UnreachableError' }
  override readonly name: string = 'UnreachableError'

  constructor(cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause)
    super('UNREACHABLE', `The server could not be reached: ${why}`, { cause })
  }
}

/** Whether it may be over when it is asked again: a restart, a cut line, too many at once. */
export function isPassing(error: unknown): boolean {
  if (error instanceof UnreachableError) return true
  // A server that answers that this is its own fault, or that it has no such thing, is there.
  if (!(error instanceof ServerError) || error.code === 'INTERNAL' || error.status === 501) return false
  return isPassingStatus(error.status)
}

export function isPassingStatus(status: number): boolean {
  return status >= 500 || status === 429
}

/** What the engine would have thrown. */
export async function toError(response: Response): Promise<DurablyError> {
  const { status } = response
  const problem = await problemIn(response)
  if (problem === null) return new ServerError('HTTP', `The server answered ${status} ${response.statusText}.`, status)
  const { code, detail, runId = '', runStatus = null, issues = [] } = problem
  switch (code) {
    case 'NOT_FOUND':
      return new NotFoundError(detail)
    case 'CONFLICT':
      return new ConflictError(detail, runId, runStatus)
    case 'INVALID_OPTION':
    case 'INVALID_REQUEST':
      return new InvalidOptionError(detail)
    case 'VALIDATION':
      return new ValidationError(subjectOf(detail, ' does not match'), issues)
    case 'HISTORY_REQUIRED':
      return new HistoryRequiredError(subjectOf(detail, ' needs stored'))
    default:
      return new ServerError(code, detail, status)
  }
}

/** What answers everything with a page of its own, such as that of an application or of a login. */
export function notOurs({ status, url }: Response, wanted: 'JSON' | 'a stream'): ServerError {
  const where = url === '' ? 'What is at this address' : `What is at ${url}`
  return new ServerError('HTTP', `${where} answered ${status} without ${wanted}. Is the handler mounted there?`, status)
}

/** Something between us and the server may answer as well. */
async function problemIn(response: Response): Promise<Problem | null> {
  if (response.headers.get('content-type')?.startsWith('application/problem+json') !== true) return null
  return response.json().catch(() => null)
}

/** The classes put their message together themselves. */
function subjectOf(detail: string, rest: string): string {
  return detail.split(rest)[0] ?? detail
}
