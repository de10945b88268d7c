import { createDurably, createKyselyStorage, type Storage } from '../../../src/index'
import { withLogPersistence } from '../../../src/plugins'
import { LATE_WRITES, lateWrite } from '../../processes/programs/late-writes'
import { blockUntilOpened, nextLine, readConfig, tell } from '../../processes/programs/parent'
import { connect } from './connect'

export interface LateSleeperConfig {
  readonly url: string
  readonly workerId: string
  /** Of all kinds together, all of which have to pause. */
  readonly runs: number
  readonly lease: { readonly staleThreshold: number; readonly heartbeatInterval: number }
}

const config = readConfig<LateSleeperConfig>()
const storage = createKyselyStorage({ dialect: connect(config.url) })
const paused: string[] = []
let isLate = false
let goOn = () => {}
const opened = new Promise<void>((resolve) => {
  goOn = resolve
})

/** How much was asked of the database and not answered yet. */
let underWay = 0

function noted<T>(call: Promise<T>): Promise<T> {
  underWay += 1
  return call.finally(() => {
    underWay -= 1
  })
}

/** Tells of everything it tries to write for the runs that were taken from it, and what the database says to it. */
const told: Storage = {
  ...storage,
  async commit(commits) {
    const wasLate = isLate
    const answers = await noted(storage.commit(commits))
    for (const [index, { lease }] of commits.entries()) {
      if (wasLate) tell({ type: 'late commit', runId: lease.runId, kept: answers[index]?.kept })
    }
    return answers
  },
  async renew(leases, leaseMs) {
    const wasLate = isLate
    const answers = await noted(storage.renew(leases, leaseMs))
    for (const [index, { runId }] of leases.entries()) {
      if (wasLate) tell({ type: 'late renewal', runId, kept: answers[index]?.kept })
    }
    return answers
  },
  recover: (params) => noted(storage.recover(params)),
}

const durably = createDurably({
  storage: told,
  workerId: config.workerId,
  concurrency: config.runs,
  pollingInterval: 50,
  logger: null,
  ...config.lease,
})
durably.use(withLogPersistence())
for (const kind of LATE_WRITES) {
  durably.register({
    job: lateWrite(kind, async (runId) => {
      paused.push(runId)
      if (paused.length === config.runs) tell({ type: 'paused', runIds: paused })
      await opened
      return true
    }),
  })
}
durably.on('worker:lease-lost', ({ runId }) => tell({ type: 'lease-lost', runId }))
durably.on('run:fail', ({ runId, error }) => tell({ type: 'failed', runId, error }))
durably.on('worker:error', ({ during, error }) => tell({ type: 'trouble', during, error }))

durably.start()
tell({ type: 'up' })
await nextLine()
// What is waited for over the pause would count as trouble: patience with it is over before its answer is heard.
while (underWay > 0) await new Promise((resolve) => setImmediate(resolve))
tell({ type: 'blocked' })
blockUntilOpened()
isLate = true
goOn()
await nextLine()
await durably.close()
