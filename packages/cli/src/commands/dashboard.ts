import { userInfo } from 'node:os'
import { createDashboard } from '@coji/durably-dashboard'
import { createDurablyHandler } from '@coji/durably-server'
import { withBulkWorker } from '../dashboard/bulk-worker'
import { isLoopback, refuseOtherHosts } from '../dashboard/hosts'
import { listen } from '../dashboard/listen'
import { openBrowser } from '../dashboard/open-browser'
import { servedCluster } from '../dashboard/served-cluster'
import { servedSchedules } from '../dashboard/served-schedules'
import { withDatabase } from '../database/open'
import type { CommonOptions } from '../options'
import type { Terminal } from '../terminal/terminal'

export interface DashboardOptions extends CommonOptions {
  readonly port?: number
  readonly host: string
  readonly write?: boolean
  readonly open?: boolean
  readonly tenant?: string
}

/** `durably dashboard`: until Ctrl-C. */
export function serveDashboard(options: DashboardOptions, terminal: Terminal): Promise<void> {
  const { host, port, write = false, tenant = null } = options
  return withDatabase(options, { writes: write }, async ({ durably, name }) => {
    durably.onError((error, during) => terminal.note(`${during}: ${(error as Error).message}`))
    const granted = { actor: userInfo().username, tenant, allow: write ? 'all' : 'read' } as const
    const cluster = await servedCluster(durably)
    const served = createDurablyHandler(durably, { authorize: () => granted, cluster, ...servedSchedules(durably) })
    const api = write ? await withBulkWorker(durably, served) : served
    const handler = refuseOtherHosts(createDashboard({ api }), host)
    const site = await listen(handler, { host, port })
    if (options.json === true) terminal.printJson({ url: site.url })
    else terminal.print(site.url)
    terminal.note(`${name}, ${write ? 'runs can be changed' : 'read-only (--write to change runs)'}. Ctrl-C ends it.`)
    if (!isLoopback(host)) terminal.note(`Whoever reaches ${host} sees all of it${write ? ', and can change it' : ''}.`)
    if (options.open === true) openBrowser(site.url, terminal)
    await ended(terminal.signal)
    await site.close()
  })
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
