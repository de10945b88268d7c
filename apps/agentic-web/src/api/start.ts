import { serve } from '@hono/node-server'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { ApiConfig } from '../config'
import { openDatabase } from '../database/open'
import { type Log, logRuns } from '../log'
import { startTelemetry } from '../telemetry/telemetry'
import { createApp, createServices } from './app'
import { InHand } from './in-hand'

/** A process of the api, listening. */
export interface RunningApi {
  readonly url: string
  stop(): Promise<void>
}

const LAST_WORDS_MS = 500

export async function startApi(config: ApiConfig, log: Log): Promise<RunningApi> {
  const telemetry = await startTelemetry(config, { service: 'api', log })
  const database = await openDatabase(config)
  if (telemetry !== null) database.durably.use(telemetry.plugin)
  logRuns(database.durably, log)
  const services = createServices(database, config, log)
  const inHand = new InHand()
  const fetch = inHand.track(createApp(services).fetch)
  const server = serve({ fetch, port: config.port, hostname: config.host })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    /** No new request is taken; streams end without their last word, so that who reads goes on elsewhere. */
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      await inHand.drain()
      await database.close()
      await telemetry?.stop()
      // What was to be said has been said; who keeps its connection for later has nothing to expect of it.
      const timer = setTimeout(() => 'closeAllConnections' in server && server.closeAllConnections(), LAST_WORDS_MS)
      await closed
      clearTimeout(timer)
    },
  }
}
