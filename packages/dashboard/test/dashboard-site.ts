import { createCluster, createScheduler } from '@coji/durably-cluster'
import { createDurably, type Durably } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { createDurablyHandler, type HandlerOptions } from '@coji/durably-server'
import type { Assets } from '../src/assets'
import { described } from '../../server/test/described'
import { serveDashboard } from '../src/create-dashboard'
import { JOBS } from './jobs'
import { listen } from './node-server'

export const BASE = '/admin/durably'

export type Site = Awaited<ReturnType<typeof openSite>>

/** A dashboard in front of an instance of its own. */
export async function openSite(assets: Assets, options: HandlerOptions = { allowAnonymous: true }) {
  const durably: Durably = createDurably({ storage: createMemoryStorage(), pollingInterval: 50, concurrency: 4 })
  durably.use(withLogPersistence())
  const jobs = durably.register(JOBS)
  const cluster = createCluster(durably, { version: '2026-11-19', labels: { zone: 'eu' } })
  const schedules = createScheduler(durably)
  const api = described(createDurablyHandler(durably, { cluster, schedules, ...options }))
  const handler = serveDashboard(assets, { api, basePath: BASE })
  let server = await listen(handler)
  const { port } = new URL(server.url)
  return {
    durably,
    jobs,
    schedules,
    url: `${server.url}${BASE}`,
    /** As while a server is started anew. */
    goAway: () => server.close(),
    async comeBack() {
      server = await listen(handler, Number(port))
    },
    async close() {
      await server.close()
      await durably.close()
    },
  }
}
