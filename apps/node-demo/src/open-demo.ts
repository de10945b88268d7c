import { createDurably } from '@coji/durably'
import { libsql } from '@coji/durably/libsql'
import { withLogPersistence } from '@coji/durably/plugins'
import { createBuildSearchIndex, createImportCsv } from '@coji/durably-jobs'
import { createDiskFiles } from './disk-files'

export interface OpenDemoParams {
  readonly db: string
  readonly folder: string
  readonly workerId?: string
  /** Stores what the timeline of the dashboard is drawn from. */
  readonly history: boolean
}

/** The same in both processes: the parent triggers and watches, the worker starts it. */
export function openDemo({ db, folder, workerId, history }: OpenDemoParams) {
  const durably = createDurably({
    dialect: libsql({ url: `file:${db}` }),
    ...(workerId === undefined ? {} : { workerId }),
  })
  if (history) durably.use(withLogPersistence())
  const files = createDiskFiles(folder)
  const jobs = durably.register({
    importCsv: createImportCsv({ files }),
    buildSearchIndex: createBuildSearchIndex({ files }),
  })
  return { durably, ...jobs }
}

export type Demo = ReturnType<typeof openDemo>
