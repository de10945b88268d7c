import { setImmediate } from 'node:timers/promises'
import { createDurably, createKyselyStorage, type LogArchive } from '../../../src/index'
import { withLogRetention } from '../../../src/plugins'
import { fileArchive } from '../../../src/plugins-node'
import type { ArchivingStorage } from '../../../src/storage'
import { connect, type DriverName } from './drivers'
import { nextLine, readConfig, tell } from './parent'

export interface ArchiverConfig {
  readonly driver: DriverName
  readonly file: string
  readonly folder: string
  /** Ends by itself when nothing is left to do. */
  readonly finishes: boolean
}

const config = readConfig<ArchiverConfig>()
const storage = createKyselyStorage({ dialect: await connect(config.driver, config.file) })
const files = fileArchive(config.folder)

/** Says before and after each thing it does, so that it can be killed there. */
async function told<T>(what: string, act: () => Promise<T>): Promise<T> {
  tell({ type: 'act', what: `before ${what}` })
  const answer = await act()
  tell({ type: 'act', what: `after ${what}` })
  return answer
}

const archive: LogArchive = {
  ...files,
  write: (name, pages) => told('write', () => files.write(name, pages)),
  remove: (name) => told('remove', () => files.remove(name)),
}
const archiving: ArchivingStorage = {
  ...storage.archiving,
  announce: (name) => told('announce', () => storage.archiving.announce(name)),
  refer: (params) => told('refer', () => storage.archiving.refer(params)),
  removeArchived: (params) => told('leave', () => storage.archiving.removeArchived(params)),
  forget: (names) => told('forget', () => storage.archiving.forget(names)),
}

const durably = createDurably({ storage: { ...storage, archiving }, logger: null })
durably.on('worker:error', ({ error }) => tell({ type: 'trouble', error }))
durably.use(withLogRetention({ archive, days: 0, every: 1 }))
tell({ type: 'up' })
if (config.finishes) {
  for (;;) {
    const { runs } = await storage.archiving.findLogged({ olderThanMs: 0, after: null, limit: 1000 })
    const strays = await storage.archiving.giveUp({ announcedForMs: 3_600_000, limit: 1 })
    if (runs.length === 0 && strays.length === 0) break
    // A driver that answers within the turn would leave none to those that archive.
    await setImmediate()
  }
  await durably.close()
} else await nextLine()
