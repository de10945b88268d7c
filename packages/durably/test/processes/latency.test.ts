import { describe, it } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { newFile, openMigrated } from '../instances'
import { connect, DRIVERS } from './programs/drivers'
import { openRaw, type RawCommits } from './raw-commits'

const SAMPLES = scaled({ quick: 40, full: 500 })
/** Whoever waited for it would be given up long before. */
const POLLING_INTERVAL = 3_600_000
const COMMITS = 20

function median(times: readonly number[]): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN
}

async function timeOfCommits(raw: RawCommits): Promise<number> {
  const startedAt = performance.now()
  for (let n = 0; n < COMMITS; n++) await raw.commit()
  return performance.now() - startedAt
}

describe.each(DRIVERS)('from trigger to handler in an idle process, with %s', (driver) => {
  it('is never a matter of the polling interval', async () => {
    const file = newFile()
    const durably = await openMigrated(await connect(driver, file), { pollingInterval: POLLING_INTERVAL })
    let begin: (at: number) => void = () => {}
    const job = durably.defineJob({ name: 'idle', input: z.object({}) }, () => begin(performance.now()))
    const raw = await openRaw(driver, file)
    durably.start()
    await job.triggerAndWait({})

    const [latencies, commits]: [number[], number[]] = [[], []]
    for (let sample = 0; sample < SAMPLES; sample++) {
      // Between two samples the worker comes to rest, under the same load of the machine as the sample next to it.
      commits.push(await timeOfCommits(raw))
      const begun = new Promise<number>((resolve) => {
        begin = resolve
      })
      const triggeredAt = performance.now()
      const { id } = await job.trigger({})
      latencies.push((await begun) - triggeredAt)
      await job.wait(id)
    }
    raw.close()

    const [latency, twentyCommits] = [median(latencies), median(commits)]
    reportSuite({
      suite: `trigger to handler, ${driver}`,
      samples: SAMPLES,
      medianMs: latency.toFixed(2),
      twentyCommitsMs: twentyCommits.toFixed(2),
    })
  })
})
