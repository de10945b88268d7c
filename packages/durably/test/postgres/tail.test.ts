import { newRun, runCommit } from '@coji/durably-core/testing'
import { describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import type { EventRecord, RunRecord } from '../../src/storage'
import type { KyselyStorage, SqlDurably } from '../../src/index'
import { withLogPersistence } from '../../src/plugins'
import { newDatabase, observe } from './databases'

const WRITERS = 8
const EVENTS = scaled({ quick: 4000, full: 100_000 })
const EACH = EVENTS / WRITERS
const MOST_A_COMMIT = 20
const MOST_A_LOOK = 200

async function startRun(storage: KyselyStorage, id: string): Promise<RunRecord> {
  await storage.enqueue([newRun({ id, jobName: id })])
  const claimToken = crypto.randomUUID()
  const [run] = await storage.claim({
    workerId: id,
    claimToken,
    jobs: [id],
    limit: 1,
    leaseMs: 600_000,
    holdsSuspect: false,
    events: [],
  })
  if (run === undefined) throw new Error(`${id} was not claimed.`)
  return run
}

/** Appends until it has written its part, a few events a commit. */
async function write(storage: KyselyStorage, run: RunRecord): Promise<void> {
  const lease = { runId: run.id, epoch: run.leaseEpoch, token: run.claimToken ?? '', leaderEpoch: null }
  let written = 0
  for (let commitNo = 1; written < EACH; commitNo++) {
    const count = Math.min(1 + (commitNo % MOST_A_COMMIT), EACH - written)
    const events = Array.from({ length: count }, (_, index) => ({
      type: 'note',
      payload: JSON.stringify({ n: written + index + 1 }),
    }))
    const [answer] = await storage.commit([runCommit({ lease, commitNo }, { events })])
    expect(answer).toMatchObject({ kept: true })
    written += count
  }
}

/** Follows all runs with one query a look, until nobody writes any more and there is nothing new. */
async function readAll(storage: KyselyStorage, runIds: readonly string[], isOver: () => boolean) {
  const seen = new Map<string, EventRecord[]>(runIds.map((id) => [id, []]))
  for (let looks = 1; ; looks++) {
    const wasOver = isOver()
    const cursors = runIds.map((runId) => ({ runId, after: seen.get(runId)?.at(-1)?.seq ?? 0 }))
    const tails = await storage.events.tail(cursors, MOST_A_LOOK)
    for (const { runId, events } of tails) seen.get(runId)?.push(...events)
    if (wasOver && tails.every(({ events }) => events.length === 0)) return { seen, looks }
  }
}

/** As a caller of the public API follows a run, until it has seen the last event that will be written. */
async function follow(durably: SqlDurably, runId: string): Promise<{ seq: unknown; n: unknown }[]> {
  const seen: { seq: unknown; n: unknown }[] = []
  for await (const event of durably.subscribe(runId)) {
    seen.push({ seq: event.seq, n: (event as { readonly n?: unknown }).n })
    if (event.seq === EACH) break
  }
  return seen
}

describe('a reader that tails on Postgres while eight writers append', () => {
  it('misses no event, and reads each run in its order (G19, G20)', async () => {
    const url = await newDatabase()
    const writers: SqlDurably[] = []
    for (let n = 0; n < WRITERS; n++) writers.push(await observe(url))
    const reader = await observe(url)
    const runs: RunRecord[] = []
    for (const [n, { storage }] of writers.entries()) runs.push(await startRun(storage, `writer-${n}`))

    const startedAt = performance.now()
    let isOver = false
    const runIds = runs.map(({ id }) => id)
    const reading = readAll(reader.storage, runIds, () => isOver)
    const follower = (await observe(url)).use(withLogPersistence())
    const following = Promise.all(runIds.map((id) => follow(follower, id)))
    await Promise.all(writers.map(({ storage }, n) => write(storage, runs[n] as RunRecord)))
    isOver = true
    const { seen, looks } = await reading
    const followed = await following
    const seconds = (performance.now() - startedAt) / 1000

    for (const events of seen.values()) {
      expect(events.length).toBe(EACH)
      // Dense and in order, with what was written under each number.
      const wrong = events.findIndex(({ seq, payload }, index) => seq !== index + 1 || payload !== `{"n":${index + 1}}`)
      expect(events[wrong]).toBe(undefined)
    }
    for (const events of followed) {
      expect(events.length).toBe(EACH)
      expect(events.findIndex(({ seq, n }, index) => seq !== index + 1 || n !== index + 1)).toBe(-1)
    }
    // It read while they wrote.
    expect(looks).toBeGreaterThan(EACH / MOST_A_LOOK)
    reportSuite({ suite: 'tail on Postgres', events: EVENTS, looks, eventsPerSecond: Math.round(EVENTS / seconds) })
  })
})
