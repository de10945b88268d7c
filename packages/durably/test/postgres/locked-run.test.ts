import { expect, it } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../../test/report'
import { newPlace, newSession } from './kit'

it('a run that somebody holds locked keeps no other run from being committed', async () => {
  const place = await newPlace()
  const somebody = await newSession(place.url)
  const durably = place.open({ concurrency: 4 })
  const open = new Map<number, () => void>()
  const job = durably.defineJob({ name: 'wait', input: z.object({ n: z.number() }) }, async (ctx, { n }) => {
    await ctx.run('wait', () => new Promise<void>((resolve) => open.set(n, resolve)))
    return n
  })
  const runs = await job.batchTrigger([0, 1, 2, 3].map((n) => ({ payload: { n } })))
  durably.start()
  await expect.poll(() => open.size).toBe(4)
  await somebody.query('begin')
  await somebody.query('select 1 from durably_runs where id = $1 for update', [runs[0]?.id])
  for (const settle of open.values()) settle()
  for (const run of runs.slice(1)) await job.wait(run.id)
  // The next ones are not in its line either.
  const times: number[] = []
  for (let n = 4; n < 7; n++) {
    const next = await job.trigger({ n })
    await expect.poll(() => open.size).toBe(n + 1)
    const began = performance.now()
    open.get(n)?.()
    expect(await job.wait(next.id)).toMatchObject({ output: n })
    times.push(performance.now() - began)
  }
  // A call waits 5 s for a lock. The machine may have had something else to do for one of them.
  expect(Math.min(...times)).toBeLessThan(4000)
  expect(await job.getRun(runs[0]?.id ?? '')).toMatchObject({ status: 'running' })
  await somebody.query('rollback')
  expect(await job.wait(runs[0]?.id ?? '')).toMatchObject({ output: 0 })
  await durably.close()
})

const LOCKED = 12
const FREE = 8
const STEPS = 60

it('twelve runs that somebody holds locked leave the others their speed', async () => {
  const place = await newPlace()
  const somebody = await newSession(place.url)
  const durably = place.open({ concurrency: LOCKED + FREE, heartbeatInterval: 100, staleThreshold: 60_000 })
  const lost: string[] = []
  durably.on('worker:lease-lost', ({ runId }) => lost.push(runId))
  let goOn = () => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const latencies: number[] = []
  let isHeld = false
  const job = durably.defineJob({ name: 'many', input: z.object({ isFree: z.boolean() }) }, async (ctx, { isFree }) => {
    await ctx.run('gate', () => gate)
    for (let n = 0; n < (isFree ? STEPS : 1); n++) {
      const beganAt = performance.now()
      await ctx.run(`step ${n}`, () => n)
      if (isFree && isHeld) latencies.push(performance.now() - beganAt)
    }
  })
  const runs = await job.batchTrigger(
    Array.from({ length: LOCKED + FREE }, (_, n) => ({ payload: { isFree: n >= LOCKED } })),
  )
  durably.start()
  await expect.poll(async () => (await durably.counts()).running).toBe(LOCKED + FREE)
  await somebody.query('begin')
  const locked = runs.slice(0, LOCKED).map(({ id }) => id)
  await somebody.query('select 1 from durably_runs where id = any($1) for update', [locked])
  isHeld = true
  const beganAt = performance.now()
  goOn()
  for (const run of runs.slice(LOCKED)) await job.wait(run.id)
  const seconds = (performance.now() - beganAt) / 1000
  isHeld = false
  for (const id of locked) expect(await job.getRun(id)).toMatchObject({ status: 'running' })
  await somebody.query('rollback')
  for (const id of locked) await job.wait(id)
  expect(lost).toEqual([])
  latencies.sort((a, b) => a - b)
  reportSuite({
    suite: 'steps beside locked rows',
    locked: LOCKED,
    free: FREE,
    'steps a second of each': (STEPS / seconds).toFixed(1),
    'commit p99 ms': (latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN).toFixed(0),
  })
})
