import type { KyselyStorage } from '../src'

/** Who has waited for another one that migrates for as long as a call waits comes again. */
export async function migrated(storage: KyselyStorage): Promise<void> {
  await storage.migrate().catch((error: { readonly code?: string }) => {
    if (error.code !== 'STORAGE_BUSY') throw error
    return migrated(storage)
  })
}
