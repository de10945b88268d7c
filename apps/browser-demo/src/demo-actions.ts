import type { Run } from '@coji/durably'
import { FIRST_LIMIT, type DemoState } from './demo-state'
import { killPage } from './farewell'
import { folderOf, type OnShare, startFileImport, startIndex, startSampleImport } from './inputs'
import { notify } from './notices'
import type { Observable } from './observable'
import type { Demo } from './open-demo'
import type { Refresh } from './watch-demo'

export interface DemoActions {
  importSample(rows: number, onShare: OnShare): Promise<void>
  importFile(file: File, onShare: OnShare): Promise<void>
  buildSearchIndex(onShare: OnShare): Promise<void>
  select(id: string | null): void
  showMore(): void
  cancel(run: Run): Promise<void>
  retry(run: Run): Promise<void>
  /** Also removes the files of the run. Resolves with whether it is gone. */
  remove(run: Run): Promise<boolean>
  /** Ends the page as a crash would: nothing in it gets to clean up. */
  killWorker(): void
}

export interface DemoActionsParams {
  readonly demo: Demo
  readonly state: Observable<DemoState>
  readonly refresh: Refresh
}

export function createDemoActions({ demo, state, refresh }: DemoActionsParams): DemoActions {
  const { durably, files, jobs } = demo
  const told = async (title: string, work: () => Promise<void>): Promise<boolean> => {
    try {
      await work()
      return true
    } catch (error) {
      notify(state, error, title)
      return false
    }
  }
  const select = (id: string | null) => {
    location.hash = id === null ? '' : `run=${id}`
  }
  const start = async (work: () => Promise<Run>) => {
    await told('The job was not started', async () => select((await work()).id))
  }
  const importCsv = jobs.importCsv.trigger
  return {
    importSample: (rows, onShare) => start(() => startSampleImport(rows, { files, onShare, trigger: importCsv })),
    importFile: (file, onShare) => start(() => startFileImport(file, { files, onShare, trigger: importCsv })),
    buildSearchIndex: (onShare) => start(() => startIndex({ files, onShare, trigger: jobs.buildSearchIndex.trigger })),
    select,
    showMore() {
      state.set({ limit: state.get().limit + FIRST_LIMIT })
      refresh.now()
    },
    async cancel({ id }) {
      await told('The run was not cancelled', async () => void (await durably.cancel(id)))
    },
    async retry({ id }) {
      await told('The run was not retried', async () => void (await durably.retry(id)))
    },
    remove: ({ id, payload }) =>
      told('The run was not deleted', async () => {
        await durably.deleteRun(id)
        if (state.get().selectedId === id) select(null)
        const folder = folderOf(payload)
        if (folder !== null) await files.removeFolder(folder)
      }),
    killWorker: killPage,
  }
}
