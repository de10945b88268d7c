import { getConnInfo } from '@hono/node-server/conninfo'
import type { ApiConfig } from '../config'
import type { AppContext } from './services'

/** Where a request comes from: the last address that a proxy of ours has seen. */
export function addressOf(context: AppContext, { trustedProxies }: Pick<ApiConfig, 'trustedProxies'>): string {
  const forwarded = (context.req.header('x-forwarded-for') ?? '').split(',').map((part) => part.trim())
  const told = trustedProxies === 0 ? undefined : forwarded.at(-trustedProxies)
  return told || (getConnInfo(context).remote.address ?? 'unknown')
}
