import { createDurably } from '@coji/durably'
import { libsql } from '@coji/durably/libsql'
import { withLogPersistence } from '@coji/durably/plugins'
import { createDashboard } from '@coji/durably-dashboard'
import { createDurablyHandler } from '@coji/durably-server'
import { ask } from './jobs.js'

function open() {
  const durably = createDurably({ dialect: libsql(process.env.DATABASE_URL ?? 'file:next.db'), concurrency: 4 })
  durably.use(withLogPersistence()) // what pages follow, and what the dashboard shows
  durably.register({ ask })
  return durably
}

/** One for the process: while developing, Next loads this file anew with each change. */
globalThis.durably ??= open()
export const { durably } = globalThis

/** @param {{ request: Request }} asked */
function authorize({ request }) {
  // Ask your session here: `request` has its cookies.
  const actor = request.headers.get('x-user') ?? 'somebody'
  return { actor, tenant: null, allow: 'all' }
}

export const handler = createDurablyHandler(durably, { basePath: '/api/durably', authorize })

export const dashboard = createDashboard({ api: createDurablyHandler(durably, { authorize }), basePath: '/admin' })
