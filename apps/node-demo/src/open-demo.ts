import { createDurably } from '@coji/durably'
import { libsql } from '@coji/durably/libsql'
import { createBuildSearchIndex, createImportCsv } from '@coji/durably-jobs'
import { createDiskFiles } from './disk-files'

export interface OpenDemoParams {
  readonly db: string
  readonly folder: string
  readonly workerId?: string
}

/** The same in both processes: the parent triggers and watches, the worker starts it. */
export function openDemo({ db, folder, workerId }: OpenDemoParams) {
  const durably = createDurably({
    dialect: libsql({ url: `file:${db}` }),
    ...(workerId === undefined ? {} : { workerId }),
  })
  const files = createDiskFiles(folder)
  const jobs = durably.register({
    importCsv: createImportCsv({ files }),
    buildSearchIndex: createBuildSearchIndex({ files }),
  })
  return { durably, ...jobs }
}

export type Demo = ReturnType<typeof openDemo>
