import type { DurablyHandler } from '@coji/durably-server'

const DETAIL =
  'A bulk action is a run, and nothing executes runs here. Choose the runs of the page instead, or say durably retry or ' +
  'durably cancel with a filter in a terminal.'

const REFUSED = { type: 'about:blank', title: 'Conflict', status: 409, code: 'CONFLICT', detail: DETAIL } as const

/** The run of a bulk action would wait for ever, unless a worker of the application knows its job. */
export function withoutBulk(api: DurablyHandler): DurablyHandler {
  return async (request) => {
    const isBulk = request.method === 'POST' && new URL(request.url).pathname === '/bulk'
    if (!isBulk) return api(request)
    return new Response(JSON.stringify(REFUSED), {
      status: REFUSED.status,
      headers: { 'content-type': 'application/problem+json' },
    })
  }
}
