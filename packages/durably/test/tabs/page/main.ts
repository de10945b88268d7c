import { createDurably, createMemoryStorage } from '@coji/durably'
import { withTabLeader } from '@coji/durably/plugins'
import { sqlocal } from '@coji/durably/sqlocal'
import { hold, work } from './jobs'
import { settingsFrom } from './settings'
import { readWitness, TAB } from './witness'

const settings = settingsFrom(new URL(location.href))
const errors: string[] = []
const heard: string[] = []
const tenures: boolean[] = []

const instance = createDurably({
  dialect: sqlocal(settings.file),
  heartbeatInterval: settings.heartbeatMs,
  pollingInterval: settings.pollingMs,
  concurrency: settings.concurrency,
  logger: null,
})
if (settings.plugin) {
  instance.use(
    withTabLeader({
      name: settings.file,
      staleThreshold: settings.leaseMs,
      heartbeatInterval: settings.heartbeatMs,
      onLeadership: (isLeader) => tenures.push(isLeader),
    }),
  )
}
instance.onError((error, during) => errors.push(`${during}: ${String(error)}`))
for (const type of ['run:trigger', 'run:complete', 'run:fail', 'run:cancel', 'worker:lease-lost'] as const) {
  instance.on(type, ({ runId }) => heard.push(`${type} ${runId}`))
}

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
  jobs: instance.register({ work, hold }),
  /** What `onError` was told. */
  errors,
  /** Events, as `type id`. */
  heard,
  /** What `onLeadership` was told. */
  tenures,
  isLeader: () => tenures.at(-1) === true,
  readWitness,
  /** False while somebody else holds the file. */
  canWrite(): Promise<boolean> {
    return writeNothing(instance.db).then(
      () => true,
      () => false,
    )
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
  /** What `use()` says to the plugin where this page lacks something. */
  useElsewhere() {
    createDurably({ storage: createMemoryStorage() }).use(withTabLeader())
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
