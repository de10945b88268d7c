import { createDurably, createKyselyStorage, type Storage } from '../../../src/index'
import type { RunCommit } from '../../../src/storage'
import { withLogPersistence } from '../../../src/plugins'
import { connect, type DriverName } from './drivers'
import { followUp, type LateWrite, lateWrite } from './late-writes'
import { blockUntilOpened, nextLine, readConfig, tell } from './parent'

export interface SleeperConfig {
  readonly driver: DriverName
  readonly file: string
  readonly kind: LateWrite
  readonly lease: { readonly staleThreshold: number; readonly heartbeatInterval: number }
}

const config = readConfig<SleeperConfig>()
const storage = createKyselyStorage({ dialect: await connect(config.driver, config.file) })
let lateRunId = ''

/** Tells of everything it tries to write for the run that was taken from it, and what the database says to it. */
const told: Storage = {
  ...storage,
  async commit(commits) {
    const answers = await storage.commit(commits)
    commits.forEach((commit, index) => {
      if (commit.lease.runId === lateRunId)
        tell({ type: 'late commit', kept: answers[index]?.kept, wrote: partsOf(commit) })
    })
    return answers
  },
  async renew(leases, leaseMs) {
    const answers = await storage.renew(leases, leaseMs)
    leases.forEach(({ runId }, index) => {
      if (runId === lateRunId) tell({ type: 'late renewal', kept: answers[index]?.kept })
    })
    return answers
  },
}

function partsOf({ steps, logs, events, progress, outcome }: RunCommit): readonly string[] {
  return [
    ...steps.map(({ status }) => `step ${status}`),
    ...logs.map(() => 'log'),
    ...events.map(({ type }) => `event ${type}`),
    ...(progress === null ? [] : ['progress']),
    ...(outcome === null ? [] : [`outcome ${outcome.kind}`]),
  ]
}

const durably = createDurably({
  storage: told,
  workerId: config.kind,
  pollingInterval: 50,
  logger: null,
  ...config.lease,
})
durably.use(withLogPersistence())
durably.register({
  late: lateWrite(config.kind, (runId) => {
    tell({ type: 'paused' })
    blockUntilOpened()
    lateRunId = runId
    return true
  }),
  next: followUp(config.kind),
})
durably.on('worker:lease-lost', ({ runId }) => tell({ type: 'lease-lost', runId }))
durably.on('run:complete', ({ runId, jobName }) => tell({ type: 'completed', runId, jobName }))
durably.on('run:fail', ({ runId, error }) => tell({ type: 'failed', runId, error }))
durably.on('worker:error', ({ during, error }) => tell({ type: 'trouble', during, error }))

durably.start()
tell({ type: 'up' })
await nextLine()
await durably.close()
