import type { Problem } from '../../src/contract'

/** The api refused, or could not be asked: `status` 0. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string
  readonly issues: NonNullable<Problem['issues']>

  constructor({ status, code, detail, issues = [] }: Problem) {
    super(detail)
    this.status = status
    this.code = code
    this.issues = issues
  }
}

export function statusOf(error: unknown): number {
  return error instanceof ApiError ? error.status : 0
}

/** In words for whoever looks at the page. */
export function wordsFor(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

interface Sent {
  readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly body?: unknown
}

export async function ask<T>(path: string, sent: Sent = {}): Promise<T> {
  const response = await open(path, sent)
  return (response.status === 204 ? null : await response.json()) as T
}

/** The answer as it comes. Who is refused finds out at once. */
export async function open(path: string, { method, body }: Sent, signal?: AbortSignal): Promise<Response> {
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  const response = await fetch(path, {
    ...(method !== undefined && { method }),
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
    headers,
  }).catch((error: unknown) => {
    throw new ApiError({ status: 0, code: 'UNREACHABLE', detail: `The server cannot be reached (${wordsFor(error)}).` })
  })
  if (!response.ok) throw new ApiError(await problemOf(response))
  return response
}

/** Something between the page and the api may answer as well. */
async function problemOf(response: Response): Promise<Problem> {
  const unknown = { status: response.status, code: 'HTTP', detail: `The server answered ${response.status}.` }
  if (response.headers.get('content-type')?.startsWith('application/problem+json') !== true) return unknown
  return response.json().catch(() => unknown)
}
