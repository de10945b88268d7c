import type { ContractStorage, StorageContractSetup } from '@coji/durably-core/testing'
import type { KyselyStorage } from '../src/kysely-storage'

const TABLES = [
  ...(['logs', 'run_events', 'run_labels', 'signals', 'steps', 'runs', 'paused_jobs', 'job_starts'] as const),
  ...(['statistics', 'statistics_place', 'workers', 'jobs'] as const),
  ...(['leaders', 'schedules', 'inbox', 'subscriptions', 'gathered', 'archive_strays', 'audit', 'settings'] as const),
]

/** All rows at once: what is left is what a migration makes. */
async function empty({ storage: { db }, schema }: Used): Promise<void> {
  const own = schema === undefined ? db : db.withSchema(schema)
  await own.transaction().execute(async (trx) => {
    for (const table of TABLES) await trx.deleteFrom(`durably_${table}`).execute()
  })
}

export interface RecyclingSetup extends StorageContractSetup {
  end(): Promise<void>
}

interface Used extends ContractStorage {
  readonly storage: KyselyStorage
  /** Of the tables, where the connection does not say. */
  readonly schema?: string | undefined
}

/**
 * Storages that are emptied when a case is over and serve the next one: making a database takes longer than most cases.
 * One that a case opened again is not kept, nor one that it left in a state in which it cannot be emptied.
 */
export function recycling(openNew: () => Promise<Used>): RecyclingSetup {
  const idle: Used[] = []
  return {
    async open() {
      const used = idle.pop() ?? (await openNew())
      let wasReopened = false
      return {
        storage: used.storage,
        reopen() {
          wasReopened = true
          return used.reopen()
        },
        async close() {
          if (wasReopened) return used.close()
          await empty(used).then(
            () => void idle.push(used),
            () => used.close(),
          )
        },
      }
    },
    async end() {
      for (const used of idle.splice(0)) await used.close()
    },
  }
}
