import { createDurably } from '../../../src/index'
import { contend } from './contend'
import { connect, type DriverName } from './drivers'
import { nextLine, readConfig, tell, witness } from './parent'

export interface ContenderConfig {
  readonly driver: DriverName
  readonly file: string
  readonly witness: string
  readonly workerId: string
}

const config = readConfig<ContenderConfig>()
let hasBegun = false
let goOn = () => {}
const allHaveBegun = new Promise<void>((resolve) => {
  goOn = resolve
})
const durably = createDurably({
  dialect: await connect(config.driver, config.file),
  workerId: config.workerId,
  concurrency: 4,
  pollingInterval: 50,
  logger: null,
})
durably.register({
  job: contend({
    // A read of the job's own in the middle of the contention: nothing of it may come out as an error of the run.
    async onBody(ctx, stepName) {
      witness(config.witness, ctx.runId, stepName)
      if (!hasBegun) tell({ type: 'begun' })
      hasBegun = true
      await allHaveBegun
      const run = await durably.getRun(ctx.runId)
      if (run?.status !== 'running' || run.ownerId !== config.workerId)
        throw new Error(`${run?.status} ${run?.ownerId}`)
    },
  }),
})
durably.on('run:complete', ({ runId }) => tell({ type: 'completed', runId }))
durably.on('run:fail', ({ runId, error }) => tell({ type: 'failed', runId, error }))
durably.on('worker:error', ({ during, error, code }) => tell({ type: 'trouble', during, error, code }))
durably.on('worker:lease-lost', ({ runId }) => tell({ type: 'trouble', during: 'run', error: `lost ${runId}` }))

tell({ type: 'up' })
await nextLine()
durably.start()
await nextLine()
goOn()
await nextLine()
await durably.close()
