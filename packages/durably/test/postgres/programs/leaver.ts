import { z } from 'zod'
import { createDurably } from '../../../src/index'
import { readConfig, tell } from '../../processes/programs/parent'
import { connect } from './connect'

export interface LeaverConfig {
  readonly url: string
  /** What it does at its end. */
  readonly last: 'close' | 'stop' | 'nothing'
}

const { url, last } = readConfig<LeaverConfig>()
const durably = createDurably({ dialect: connect(url) })
const job = durably.defineJob({ name: 'one', input: z.object({}) }, (ctx) => ctx.run('only', () => 1))

if (last !== 'nothing') durably.start()
const { id } = await job.trigger({})
// Waiting for a run, it listens.
if (last === 'nothing') await job.wait(id, { timeout: 300 }).catch(() => {})
else await job.wait(id)
if (last === 'close') await durably.close()
if (last === 'stop') await durably.stop()
tell({ type: 'done', at: Date.now() })
