import { createDurably } from '../../../src/index'
import { connect, type DriverName } from './drivers'
import { fortySteps } from './forty-steps'
import { readConfig, tell, witness } from './parent'

export interface MortalConfig {
  readonly driver: DriverName
  readonly file: string
  readonly witness: string
  readonly workerId: string
  /** Killed before, and perhaps not followed by one that lived long enough to take their runs over. */
  readonly deadWorkerIds: readonly string[]
  /** Finishes what is there and ends; otherwise it goes on with new runs until it is killed. */
  readonly finishes: boolean
}

const config = readConfig<MortalConfig>()
const { workerId, deadWorkerIds } = config
const durably = createDurably({
  dialect: await connect(config.driver, config.file),
  workerId,
  pollingInterval: 100,
  logger: null,
})
const { job } = durably.register({
  job: fortySteps((runId, stepName) => {
    witness(config.witness, runId, stepName)
    tell({ type: 'start', runId, stepName })
  }),
})
durably.on('step:complete', ({ runId, stepName }) => tell({ type: 'commit', runId, stepName }))
durably.on('worker:error', ({ during, error }) => tell({ type: 'trouble', during, error }))

tell({ type: 'up' })
for (const dead of deadWorkerIds) await durably.recover({ workerId: dead })
tell({ type: 'recovered' })
durably.start()
for (let n = 0; ; n++) {
  const open = await job.getRuns({ status: ['pending', 'running'] })
  await Promise.all(open.map(({ id }) => job.wait(id)))
  if (config.finishes) break
  const { id } = await job.trigger({ seed: `${workerId}-${n}` })
  tell({ type: 'triggered', runId: id })
}
await durably.close()
