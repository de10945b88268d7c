import { openDemo } from './open-demo'
import { writeSighting } from './witness'
import { workerConfig } from './worker-config'

const config = workerConfig.parse(JSON.parse(process.argv[2] ?? '{}'))
const { durably } = openDemo(config)

durably.use({
  name: 'witness',
  aroundStep: ({ runId, stepName }, next) => {
    writeSighting(config.witness, { pid: process.pid, runId, stepName })
    if (process.connected) process.send?.({ runId, stepName })
    return next()
  },
})

// Ctrl-C reaches the whole process group. The parent decides what becomes of this process.
process.on('SIGINT', () => {})
process.once('message', () => void leave())
process.once('disconnect', () => void leave())

let isLeaving = false

/** The parent has said stop, or is gone. */
async function leave(): Promise<void> {
  if (isLeaving) return
  isLeaving = true
  await durably.stop({ timeout: 2_000 })
  await durably.close()
  if (process.connected) process.disconnect()
}

await durably.migrate()
// The parent killed that process itself, so nobody has to wait for its lease to run out.
if (config.dead !== null) await durably.recover({ workerId: config.dead })
durably.start()
