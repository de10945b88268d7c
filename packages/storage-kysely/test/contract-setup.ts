import { FENCES, type Fences } from '../src/statement/fences'
import { createKyselyStorageWith, type KyselyStorage } from '../src/kysely-storage'
import type { OpenDatabase } from './databases'

/** Short enough for the few runs of a case to take many. */
const STRETCH = 6

/** Storages for the contract; `reopen` leaves the old one as a kill would. */
export function contractSetup(database: { open(): Promise<OpenDatabase> }, fences: Fences = FENCES) {
  return {
    async open() {
      const opened = await database.open()
      const storages: KyselyStorage[] = []
      const connect = async () => {
        const storage = createKyselyStorageWith({
          dialect: opened.connect(),
          durability: 'fast',
          fences,
          stretch: STRETCH,
        })
        storages.push(storage)
        return storage
      }
      const storage = await connect()
      await storage.migrate()
      return {
        storage,
        schema: opened.schema,
        reopen: connect,
        async close() {
          for (const one of storages) await one.close()
          await opened.dispose()
        },
      }
    },
  }
}
