import { sqlocal } from '../src/drivers/sqlocal'
import { createKyselyStorage, type KyselyStorage } from '../src/kysely-storage'

/** Storages on files of their own in OPFS; `reopen` comes after the worker of the one before was killed. */
export function contractSetup() {
  return {
    async open() {
      const file = `contract-${crypto.randomUUID()}.sqlite3`
      let kill = () => {}
      let storage: KyselyStorage
      const connect = () => {
        kill()
        const dialect = sqlocal(file)
        const worker = dialect.client['processor'] as Worker
        kill = () => killWorker(worker)
        storage = createKyselyStorage({ dialect })
        return storage
      }
      const first = connect()
      await first.migrate()
      return {
        storage: first,
        reopen: () => opened(connect()),
        async close() {
          await storage.close()
          await removeFile(file)
        },
      }
    },
  }
}

/** A call gives up after some seconds, and says to try again; on a busy machine a worker takes longer to start. */
async function opened(storage: KyselyStorage): Promise<KyselyStorage> {
  await storage.checkSchema().catch((error: { readonly code?: string }) => {
    if (error.code !== 'STORAGE_UNAVAILABLE') throw error
    return opened(storage)
  })
  return storage
}

/** A worker that ends by itself tells it like this; one that is terminated tells nobody. */
export function killWorker(worker: Worker): void {
  worker.terminate()
  worker.dispatchEvent(new ErrorEvent('error', { message: 'it was killed' }))
}

/** Also what SQLite leaves beside it. */
export async function removeFile(file: string): Promise<void> {
  const directory = await navigator.storage.getDirectory()
  for (const name of [file, `${file}-journal`]) await directory.removeEntry(name).catch(() => {})
}
