import type { DashboardHandler } from '@coji/durably-dashboard'

/** Only this machine can be reached so. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

/**
 * A page of the web may have its own name lead to this machine, and its scripts would be of the same origin then. Nobody
 * but the names of this machine is answered.
 */
export function refuseOtherHosts(handler: DashboardHandler, host: string): DashboardHandler {
  if (!isLoopback(host)) return handler
  return async (request) => {
    const { hostname } = new URL(request.url)
    if (isLoopback(hostname.replace(/^\[|\]$/g, ''))) return handler(request)
    return new Response('This address is not the one that was printed.', { status: 403 })
  }
}
