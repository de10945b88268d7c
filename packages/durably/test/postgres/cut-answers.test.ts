import { describe, expect, it, onTestFinished } from 'vitest'
import { type CutProxy, startCutProxy } from '../../../../test/cut-proxy'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import type { SqlDurably } from '../../src/index'
import { findBreaches } from '../processes/audit'
import { execute, findRepeats, installAudit, readAudit } from './audit'
import { newDatabase, observe } from './databases'
import { FIVE_STEPS, fiveSteps, outcomeOf } from './programs/five-steps'

const CUTS = scaled({ quick: 24, full: 200 })
/** Each has a proxy of its own: after a cut it pauses, and the others go on. */
const INSTANCES = 5
const CONCURRENCY = 2
/** What is sent again is answered, mostly: cut again and again, it would be the same few writes. */
const EACH_NTH = 3

async function newProxy(url: string): Promise<CutProxy> {
  const { hostname, port } = new URL(url)
  const proxy = await startCutProxy({ host: hostname, port: Number(port) })
  onTestFinished(() => proxy.close())
  return proxy
}

const WRITES = {
  commit: (sql: string) => /insert into "durably_steps"/.test(sql),
  claim: (sql: string) => /update "durably_runs"/.test(sql) && /'running'/.test(sql) && !/"durably_steps"/.test(sql),
  enqueue: (sql: string) => /insert into "durably_runs"/.test(sql) && !/"durably_steps"/.test(sql),
} as const

describe('an answer that is cut off after Postgres did what it was asked', () => {
  it.each([
    ['commit', CUTS],
    ['claim', Math.ceil(CUTS / 10)],
    ['enqueue', Math.ceil(CUTS / 10)],
  ] as const)('to a %s: nothing is doubled, nothing lost (G7, G15)', async (kind, cuts) => {
    const url = await newDatabase()
    const observer = await observe(url)
    await installAudit(observer)
    const seen = { bodies: [] as string[], failed: [] as unknown[], runs: 0, cuts: 0, attempts: 0 }

    async function feed(): Promise<SqlDurably> {
      const proxy = await newProxy(url)
      const durably = await observe(proxy.through(url), { concurrency: CONCURRENCY, pollingInterval: 20 })
      const onBody = (runId: string, stepName: string) => seen.bodies.push(`${runId}/${stepName}`)
      const { job } = durably.register({ job: fiveSteps({ stepMs: 1, onBody }) })
      for (const type of ['run:fail', 'run:recover', 'worker:lease-lost'] as const) {
        durably.on(type, (event) => seen.failed.push(event))
      }
      durably.start()
      let isOver = false
      let sent = 0
      const isTurn = (sql: string) => WRITES[kind](sql) && ++sent % EACH_NTH === 0
      const callers = Array.from({ length: CONCURRENCY }, async () => {
        while (!isOver) {
          const n = seen.runs++
          expect((await job.triggerAndWait({ n })).output).toBe(outcomeOf(n))
        }
      })
      for (; seen.cuts < cuts; seen.cuts++) await proxy.cutAnswer(isTurn)
      isOver = true
      await Promise.all(callers)
      seen.attempts += proxy.attempts.length
      return durably
    }
    // Who stops while others go on may give back what it has just claimed.
    const instances = await Promise.all(Array.from({ length: Math.min(INSTANCES, cuts) }, feed))
    for (const durably of instances) await durably.stop()

    const { bodies, failed, runs } = seen
    expect(failed).toEqual([])
    expect(await observer.counts()).toMatchObject({ completed: runs, failed: 0, pending: 0, running: 0 })
    expect(await execute(observer, 'select count(*) as n from durably_steps')).toEqual([{ n: String(runs * 5) }])
    expect(bodies.length).toBe(runs * FIVE_STEPS.length)
    expect(new Set(bodies).size).toBe(bodies.length)
    const writes = await readAudit(observer)
    expect(findBreaches(writes)).toEqual([])
    expect(findRepeats(writes, [])).toEqual([])
    expect(writes.filter(({ epoch }) => epoch > 1)).toEqual([])
    expect(seen.attempts).toBeGreaterThan(seen.cuts)
    expect(runs).toBeGreaterThan(cuts / 5)
    reportSuite({ suite: `cut answers on Postgres: ${kind}`, cuts: seen.cuts, runs })
  })
})
