import { createDurably, type Durably } from '@coji/durably'
import { withLogPersistence, withTabLeader } from '@coji/durably/plugins'
import { sqlocal } from '@coji/durably/sqlocal'
import { createBuildSearchIndex, createImportCsv } from '@coji/durably-jobs'
import { bulkJob } from '@coji/durably-server'
import { DATABASE } from './database'
import type { DemoFiles } from './demo-files'
import { createForgetfulFiles } from './forgetful-files'
import { createOpfsFiles } from './opfs-files'

/** Two, so that a short run does not wait for a long one. */
const CONCURRENCY = 2
/** Here people kill the worker for the fun of it. */
const MAX_CRASHES = 100

export interface OpenDemoParams {
  /** Go on in memory when there is no file to be had. */
  readonly allowMemory: boolean
  readonly onLeadership: (isLeader: boolean) => void
}

/** What the page works with. */
export type Demo = Awaited<ReturnType<typeof openDemo>>

/** Opens the database and registers the jobs; nothing is executed before `durably.start()`. */
export async function openDemo({ allowMemory, onLeadership }: OpenDemoParams) {
  const config = { databasePath: DATABASE, allowMemory } as const
  const dialect = sqlocal(config)
  const durably = createDurably({ dialect, concurrency: CONCURRENCY, maxCrashes: MAX_CRASHES })
  durably.use(withLogPersistence())
  try {
    await durably.migrate()
    const { storageType } = await dialect.client.getDatabaseInfo()
    const isInMemory = storageType === 'memory'
    // A database in memory is this tab's own: there is nobody to share the work with.
    if (isInMemory) onLeadership(true)
    else durably.use(withTabLeader({ name: DATABASE, onLeadership }))
    const files = isInMemory ? createForgetfulFiles() : createOpfsFiles()
    return { durably, files, isInMemory, jobs: registerJobs(durably, files) }
  } catch (error) {
    // Not waited for: what keeps the database from opening may keep it from closing.
    void durably.close().catch(() => undefined)
    throw error
  }
}

function registerJobs(durably: Durably, files: DemoFiles) {
  // What the dashboard does to many runs at once is a run as well, and the worker is here.
  durably.register({ bulk: bulkJob(durably) })
  return durably.register({
    importCsv: createImportCsv({ files }),
    buildSearchIndex: createBuildSearchIndex({ files }),
  })
}
