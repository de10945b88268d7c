import { createDurably, createKyselyStorage, createMemoryStorage } from '@coji/durably'
import { createTaskQueue } from '@coji/durably/queue'
import { z } from 'zod'
import { beside } from '../databases.mjs'

/** The project itself, from its built packages, with the documented helpers and their defaults. */
export const concurrency = { runs: 64, tasks: 200 }

const FILLER = 'the one that fills'

async function dialectFor({ driver, file, url }) {
  if (driver === 'better-sqlite3') return (await import('@coji/durably/better-sqlite3')).betterSqlite3(file)
  if (driver === 'libsql') return (await import('@coji/durably/libsql')).libsql(`file:${file}`)
  return (await import('@coji/durably/postgres')).postgres({ connectionString: url })
}

async function storageIn(database) {
  if (database.driver === 'memory') return createMemoryStorage()
  const { durability } = database
  return createKyselyStorage({ dialect: await dialectFor(database), ...(durability !== null && { durability }) })
}

async function durabilityOf(storage, { url }) {
  const report = await storage.reportDurability?.()
  if (report === undefined) return '-'
  const { journalMode, synchronous } = report
  if (journalMode !== null) return `${journalMode}, ${synchronous}`
  return `synchronous_commit ${synchronous}, fsync ${await beside({ url }, 'show fsync')}`
}

export async function openRuns({ database, concurrency, body, isFilling }) {
  const storage = await storageIn(database)
  const durably = createDurably({ storage, concurrency, ...(isFilling && { workerId: FILLER }) })
  const job = durably.defineJob({ name: 'bench', input: z.looseObject({ n: z.number() }) }, async (ctx, payload) => {
    await body(payload, (name, run) => ctx.run(name, run))
    return { ok: true }
  })
  await durably.migrate()
  return {
    durability: () => durabilityOf(storage, database),
    enqueue: (payload) => job.trigger(payload),
    enqueueMany: (payloads) => job.batchTrigger(payloads.map((payload) => ({ payload }))),
    start: () => durably.start(),
    unfinished: async () => unended(await durably.counts()),
    recover: () => durably.recover({ workerId: FILLER }),
  }
}

function unended({ pending, running }) {
  return pending + running
}

export async function openTasks({ database, concurrency, body }) {
  const storage = await storageIn(database)
  const queue = createTaskQueue({ storage, concurrency })
  queue.register('bench', (payload) => body(payload))
  await queue.migrate()
  return {
    durability: () => durabilityOf(storage, database),
    enqueue: (payload) => queue.enqueue('bench', payload),
    enqueueMany: (payloads) =>
      queue.enqueueMany(
        'bench',
        payloads.map((payload) => ({ payload })),
      ),
    start: () => queue.start(),
    async unfinished() {
      const { queued, running, retry_scheduled } = await queue.countsByState()
      return queued + running + retry_scheduled
    },
  }
}
