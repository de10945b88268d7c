import { z } from 'zod'
import { createDurably, DurablyError } from '../../../src/index'
import { connect, type DriverName } from './drivers'
import { nextLine, readConfig, tell } from './parent'

export interface LockedOutConfig {
  readonly driver: DriverName
  readonly file: string
}

const { driver, file } = readConfig<LockedOutConfig>()
await becomeNobody()

const durably = createDurably({ dialect: await connect(driver, file), pollingInterval: 50, logger: null })
const job = durably.defineJob({ name: 'one', input: z.object({}) }, (ctx) => ctx.run('only', () => 1))
durably.on('worker:error', ({ during, code }) => tell({ type: 'trouble', during, code }))
durably.on('run:complete', ({ runId }) => tell({ type: 'completed', runId }))
durably.on('run:fail', ({ runId }) => tell({ type: 'failed', runId }))
durably.start()

await nextLine()
const refusal = await job.trigger({}).then(
  () => 'none',
  (error: unknown) => (error instanceof DurablyError ? error.code : String(error)),
)
tell({ type: 'refused', refusal, worker: durably.health().worker })
await nextLine()
await durably.close()

/** File permissions mean nothing to root. The native driver is loaded before: nobody may not be allowed to read it. */
async function becomeNobody(): Promise<void> {
  if (process.getuid?.() !== 0) return
  const memory = createDurably({ dialect: await connect(driver, ':memory:') })
  await memory.migrate()
  await memory.close()
  process.setgroups?.([])
  process.setgid?.(65534)
  process.setuid?.(65534)
}
