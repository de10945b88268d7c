import { createDurably, createMemoryStorage } from '@coji/durably'
import { withTabLeader } from '@coji/durably/plugins'
import { sqlocal } from '@coji/durably/sqlocal'
import { halt, hold, linger, lingering, rare, rows, work } from './jobs'
import { settingsFrom } from './settings'
import { readWitness, TAB } from './witness'

const settings = settingsFrom(new URL(location.href))
if (settings.deaf) addEventListener('freeze', (event) => event.stopImmediatePropagation(), true)
const errors: string[] = []
const heard: string[] = []
const tenures: boolean[] = []
const troubles: string[] = []
/** How long the tab has heard nothing of a leader when it becomes one. */
const silences: number[] = []
let lastBeatAt = Number.NaN
const beats = { heard: 0 }

const instance = createDurably({
  dialect: sqlocal(settings.file),
  staleThreshold: settings.leaseMs,
  heartbeatInterval: settings.heartbeatMs,
  pollingInterval: settings.pollingMs,
  concurrency: settings.concurrency,
  logger: null,
})
if (settings.plugin) {
  instance.use(
    withTabLeader({
      ...(settings.name !== '' && { name: settings.name }),
      ...(settings.version !== '' && { version: settings.version }),
      staleThreshold: settings.leaseMs,
      heartbeatInterval: settings.heartbeatMs,
      onLeadership(isLeader) {
        tenures.push(isLeader)
        if (isLeader) silences.push(performance.now() - lastBeatAt)
      },
    }),
  )
  new BroadcastChannel(`durably:leader:${instance.storage.location}`).addEventListener('message', ({ data }) => {
    if (data.kind !== 'beat') return
    lastBeatAt = performance.now()
    beats.heard += 1
  })
}
instance.onError((error, during) => errors.push(`${during}: ${String(error)}`))
for (const type of ['run:trigger', 'run:complete', 'run:fail', 'run:cancel', 'worker:lease-lost'] as const) {
  instance.on(type, ({ runId }) => heard.push(`${type} ${runId}`))
}
instance.on('worker:error', ({ during, code }) => troubles.push(`${during}: ${code}`))

let fileHold: FileHold | null = null

interface FileHold {
  rollback(): { execute(): Promise<void> }
}

/** Takes the file for writing. */
function writeNothing(db: Pick<typeof instance.db, 'updateTable'>): Promise<unknown> {
  return db.updateTable('durably_runs').set({ tenant: '' }).where('id', '=', 'nobody').execute()
}

const tab = {
  name: TAB,
  durably: instance,
  jobs: instance.register({ work, hold, linger, rows, ...(settings.knows !== '' && { rare: rare(settings.knows) }) }),
  /** What `onError` was told. */
  errors,
  /** Each `worker:error`, as `during: code`. */
  troubles,
  /** Events, as `type id`. */
  heard,
  /** What `onLeadership` was told. */
  tenures,
  silences,
  /** How many the tabs that led have sent since this one was opened. */
  beats,
  lingering,
  halt,
  isLeader: () => tenures.at(-1) === true,
  readWitness,
  /** False while somebody else holds the file. */
  canWrite(): Promise<boolean> {
    return writeNothing(instance.db).then(
      () => true,
      () => false,
    )
  },
  /** The file may be in other hands for longer than a call waits. Nothing was sent then. */
  async insist<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'CONNECTION_HELD') throw error
      }
    }
  },
  /** Opens a transaction that keeps the file until it is undone. */
  async holdFile() {
    const transaction = await instance.db.startTransaction().execute()
    await writeNothing(transaction)
    fileHold = transaction
  },
  async letGoOfFile() {
    await fileHold?.rollback().execute()
  },
  /** Runs a job as a page does that has just been loaded, in memory. */
  async workElsewhere() {
    const told: unknown[] = []
    const elsewhere = createDurably({ storage: createMemoryStorage(), logger: null })
    elsewhere.onError((error) => told.push(error instanceof Error && 'code' in error ? error.code : error))
    elsewhere.use(withTabLeader({ onLeadership: (isLeader) => told.push(isLeader) }))
    elsewhere.start()
    const { output } = await elsewhere.register({ work }).work.triggerAndWait({ steps: 1, ms: 0 })
    await elsewhere.close()
    return { output, told }
  },
}

export type Tab = typeof tab

declare global {
  interface Window {
    tab?: Tab
  }
}

await instance.migrate()
instance.start()
window.tab = tab
