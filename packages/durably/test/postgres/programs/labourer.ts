import { createDurably, createKyselyStorage, type Storage } from '../../../src/index'
import { nextLine, readConfig, tell } from '../../processes/programs/parent'
import { connect } from './connect'
import { fiveSteps } from './five-steps'
import { napping } from './napping'
import { skewClock } from './skewed-clock'
import { witnessBody } from './witness-body'

export interface LabourerConfig {
  readonly url: string
  readonly workerId: string
  readonly witness: string
  /** Killed before, and not yet followed by one that lived long enough to take their runs over. */
  readonly deadWorkerIds: readonly string[]
  readonly concurrency: number
  readonly stepMs: number
  readonly skewMs: number
  readonly lease: { readonly staleThreshold: number; readonly heartbeatInterval: number }
}

const config = readConfig<LabourerConfig>()
skewClock(config.skewMs)

const storage = createKyselyStorage({ dialect: connect(config.url) })
const epochs = new Map<string, number>()

/** Remembers under which epoch this process has a run. */
const watched: Storage = {
  ...storage,
  async claim(params) {
    const runs = await storage.claim(params)
    for (const { id, leaseEpoch } of runs) epochs.set(id, leaseEpoch)
    return runs
  },
}

function onBody(runId: string, stepName: string): void {
  witnessBody(config.witness, { runId, stepName, epoch: epochs.get(runId) ?? -1 })
}

const durably = createDurably({
  storage: watched,
  workerId: config.workerId,
  concurrency: config.concurrency,
  pollingInterval: 100,
  maxCrashes: 1000,
  logger: null,
  ...config.lease,
})
const { napping: job } = durably.register({
  steps: fiveSteps({ stepMs: config.stepMs, onBody }),
  napping: napping(onBody),
})
for (const type of ['run:complete', 'run:fail', 'run:recover', 'worker:lease-lost'] as const) {
  durably.on(type, ({ runId }) => tell({ type, runId }))
}
durably.on('worker:error', ({ during, error, code }) => tell({ type: 'trouble', during, error, code }))

tell({ type: 'up' })
for (const dead of config.deadWorkerIds) await durably.recover({ workerId: dead })
tell({ type: 'recovered' })
durably.start()
for (;;) {
  const line = await nextLine()
  if (line === 'stop') break
  // Asked for by who believes that it is another time.
  const run = await job.trigger({}, { delay: Number(line) })
  tell({ type: 'triggered', runId: run.id })
}
await durably.close()
