import { type Hint, type LimitedClaim, MOST_STARTS, type RunRecord } from '../../port'
import { assert, assertEqual, itemAt } from '../assert'
import { FAR_MS, newId, newRun } from './builders'
import { casesOf } from './contract-case'
import { Holder } from './holder'
import { assertInstant } from './instants'
import type { Kit } from './kit'

const idsOf = ({ runs }: Pick<LimitedClaim, 'runs'>) => runs.map(({ id }) => id)

async function enqueueMany(kit: Kit, count: number): Promise<string[]> {
  const runs = Array.from({ length: count }, () => newRun())
  await kit.storage.enqueue(runs)
  return runs.map(({ id }) => id)
}

function msOf(instant: string | null): number {
  assertInstant(instant, 'an instant')
  return Date.parse(instant)
}

export const LIMIT_CASES = casesOf('limits', 'limits', {
  'a claim takes as many runs as the concurrency of the job leaves room for': async (kit) => {
    const ids = await enqueueMany(kit, 5)
    assertEqual(
      idsOf(await kit.claimWithin({ concurrency: 3 }, { limit: 2 })),
      ids.slice(0, 2),
      'ids of the first claim',
    )
    const second = await kit.claimWithin({ concurrency: 3 })
    assertEqual(idsOf(second), ids.slice(2, 3), 'ids of the second claim')
    assertEqual(await kit.claimWithin({ concurrency: 3 }), { runs: [], opensInMs: 0 }, 'a claim without room')
    await new Holder(kit, itemAt(second.runs, 0, 'runs')).leave('complete')
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 3 })), ids.slice(3, 4), 'ids claimed after an end')
  },

  'a claim under limits shows its lease and takes runs in their order, as any claim': async (kit) => {
    const start = { at: '2026-01-01T00:00:00.000Z' }
    const runs = [newRun({ start }), newRun({ start, priority: 3 }), newRun({ start, jobName: 'other', priority: 9 })]
    await kit.storage.enqueue(runs)
    const claimed = await kit.claimWithin({ concurrency: 5 }, { workerId: 'w-7', claimToken: 'token-7' })
    assertEqual(idsOf(claimed), [runs[1]?.id, runs[0]?.id], 'ids claimed')
    for (const run of claimed.runs) {
      assertEqual([run.status, run.ownerId, run.claimToken, run.leaseEpoch], ['running', 'w-7', 'token-7', 1], 'a run')
      assertEqual(await kit.run(run.id), run, 'getRun and the answer')
    }
  },

  'a claim without any limits takes what there is': async (kit) => {
    const ids = await enqueueMany(kit, 70)
    assertEqual(await kit.claimWithin({}), { runs: await runsOf(kit, ids), opensInMs: 0 }, 'the claim')
  },

  'concurrency counts all tenants, and no other job': async (kit) => {
    await kit.start({ jobName: 'other' })
    await kit.storage.enqueue([newRun({ tenant: 'a' }), newRun({ tenant: 'b' }), newRun({ tenant: 'c' })])
    assertEqual((await kit.claimWithin({ concurrency: 2 })).runs.length, 2, 'runs claimed')
  },

  'every claim counts towards the concurrency, one without limits too': async (kit) => {
    await enqueueMany(kit, 2)
    await kit.hold()
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 1 })), [], 'ids claimed')
    assertEqual((await kit.claim()).length, 1, 'runs claimed without limits')
  },

  'an expired lease counts towards the concurrency until it is recovered': async (kit) => {
    const [first, second] = await enqueueMany(kit, 2)
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 1 }, { leaseMs: -1000 })), [first], 'ids claimed')
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 1 })), [], 'ids claimed before recovery')
    await kit.recover()
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 2 })), [first, second], 'ids claimed after recovery')
  },

  'each asks with its own number': async (kit) => {
    const ids = await enqueueMany(kit, 4)
    await kit.claimWithin({ concurrency: 2 })
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 1 })), [], 'ids claimed by who has the smaller one')
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 3 })), [ids[2]], 'ids claimed by who has the larger one')
  },

  'of 16 claims at once no more than the concurrency succeed': async (kit) => {
    await enqueueMany(kit, 24)
    const claims = await Promise.all(
      Array.from({ length: 16 }, () => kit.claimWithin({ concurrency: 5 }, { limit: 2 })),
    )
    const rest = await kit.claimWithin({ concurrency: 5 })
    const ids = [...claims, rest].flatMap(idsOf)
    assertEqual([ids.length, new Set(ids).size], [5, 5], 'runs claimed, and different ones')
    assertEqual((await kit.storage.counts({})).running, 5, 'running runs')
  },

  'a claim begins no more runs than the rate allows, and says when it may begin the next': async (kit) => {
    const rateLimit = { max: 3, per: FAR_MS }
    const ids = await enqueueMany(kit, 5)
    const first = await kit.claimWithin({ rateLimit }, { limit: 2 })
    assertEqual([idsOf(first), first.opensInMs], [ids.slice(0, 2), 0], 'the first claim')
    const second = await kit.claimWithin({ rateLimit })
    assertEqual(idsOf(second), ids.slice(2, 3), 'ids of the second claim')
    for (const { opensInMs } of [second, await kit.claimWithin({ rateLimit })]) {
      assert(opensInMs > FAR_MS - 60_000 && opensInMs <= FAR_MS, `opensInMs: is ${opensInMs}`)
    }
  },

  'what has begun counts towards the rate, whatever became of it': async (kit) => {
    const rateLimit = { max: 2, per: FAR_MS }
    await enqueueMany(kit, 2)
    const { runs } = await kit.claimWithin({ rateLimit }, { limit: 1 })
    await new Holder(kit, itemAt(runs, 0, 'runs')).leave('release')
    const again = await kit.claimWithin({ rateLimit })
    assertEqual(idsOf(again), [itemAt(runs, 0, 'runs').id], 'ids claimed')
    await new Holder(kit, itemAt(again.runs, 0, 'runs')).leave('complete')
    await kit.order('remove', itemAt(runs, 0, 'runs').id)
    assertEqual(idsOf(await kit.claimWithin({ rateLimit })), [], 'ids claimed afterwards')
  },

  'the rate looks back from each moment': async (kit) => {
    const [max, per] = [2, 25]
    await enqueueMany(kit, 7)
    const starts: number[] = []
    while (starts.length < 7) {
      const { runs } = await kit.claimWithin({ rateLimit: { max, per } })
      starts.push(...runs.map(({ heartbeatAt }) => msOf(heartbeatAt)))
    }
    for (const [index, at] of starts.slice(max).entries()) {
      const before = starts[index] ?? at
      assert(at - before >= per, `start ${index + max}: came ${at - before} ms after start ${index}, expected ${per}`)
    }
  },

  'the rates of two jobs are apart': async (kit) => {
    const rateLimit = { max: 1, per: FAR_MS }
    await kit.storage.enqueue([newRun(), newRun(), newRun({ jobName: 'other' })])
    assertEqual((await kit.claimWithin({ rateLimit })).runs.length, 1, 'runs claimed of one job')
    assertEqual((await kit.claimWithin({ rateLimit, jobName: 'other' })).runs.length, 1, 'runs claimed of the other')
  },

  'of 16 claims at once no more begin than the rate allows': async (kit) => {
    const rateLimit = { max: 5, per: FAR_MS }
    await enqueueMany(kit, 24)
    const claims = await Promise.all(Array.from({ length: 16 }, () => kit.claimWithin({ rateLimit }, { limit: 2 })))
    const rest = await kit.claimWithin({ rateLimit })
    assertEqual([...claims, rest].flatMap(idsOf).length, 5, 'runs claimed')
  },

  'a claim that both limit keeps both': async (kit) => {
    const rateLimit = { max: 3, per: FAR_MS }
    await enqueueMany(kit, 6)
    const { runs } = await kit.claimWithin({ concurrency: 2, rateLimit })
    assertEqual(runs.length, 2, 'runs claimed by concurrency')
    for (const run of runs) await new Holder(kit, run).leave('complete')
    assertEqual((await kit.claimWithin({ concurrency: 2, rateLimit })).runs.length, 1, 'runs claimed by rate')
  },

  'a rate may count as many starts as are remembered': async (kit) => {
    const rateLimit = { max: MOST_STARTS, per: FAR_MS }
    await enqueueMany(kit, 3)
    assertEqual((await kit.claimWithin({ rateLimit })).runs.length, 3, 'runs claimed')
    assertEqual((await kit.limits.load({ jobName: 'job', concurrency: null, rateLimit })).opensInMs, 0, 'opensInMs')
  },

  'a repeated claim finds what was claimed, and neither claims nor counts anything': async (kit) => {
    const rateLimit = { max: 3, per: FAR_MS }
    const ids = await enqueueMany(kit, 4)
    await kit.claimWithin({ rateLimit }, { claimToken: 'mine', limit: 2 })
    assertEqual(
      await kit.claimedIds({ claimToken: 'mine', repeat: true }),
      ids.slice(0, 2),
      'ids of the repeated claim',
    )
    assertEqual(await kit.claimedIds({ claimToken: 'never', repeat: true }), [], 'ids of an unknown token')
    assertEqual(idsOf(await kit.claimWithin({ rateLimit })), ids.slice(2, 3), 'ids that the rate leaves')
  },

  'a claim under limits takes one suspect, and others past the rest': async (kit) => {
    const suspects = await kit.suspects(3)
    const others = await enqueueMany(kit, 4)
    const expected = [suspects[0], ...others.slice(0, 2)]
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 3 })), expected, 'ids of a claim')
    const held = await kit.claimWithin({ concurrency: 5 }, { holdsSuspect: true })
    assertEqual(idsOf(held), others.slice(2), 'ids claimed by who holds one')
  },

  'a claim under limits takes runs past those whose key is busy': async (kit) => {
    await kit.start({ concurrencyKey: 'key' })
    const busy = { concurrencyKey: 'key', priority: 9 }
    await kit.storage.enqueue(Array.from({ length: 100 }, () => newRun(busy)))
    const ids = await enqueueMany(kit, 3)
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 2 })), ids.slice(0, 2), 'ids claimed')
  },

  'a claim under limits tells its events': async (kit) => {
    const [id = ''] = await enqueueMany(kit, 1)
    const events = [{ type: 'run:start', payload: '{}' }]
    const { runs } = await kit.claimWithin({ concurrency: 1, rateLimit: { max: 1, per: FAR_MS } }, { events })
    assertEqual(itemAt(runs, 0, 'runs').lastEventSequence, 1, 'lastEventSequence')
    const stored = (await kit.storage.events?.getEvents(id, {}))?.map(({ type }) => type)
    assertEqual(stored ?? ['run:start'], ['run:start'], 'stored events')
  },

  'the load of a job is what runs of it, and when its rate lets more begin': async (kit) => {
    const limits = { jobName: 'job', concurrency: 5, rateLimit: { max: 2, per: FAR_MS } }
    assertEqual(await kit.limits.load(limits), { running: 0, opensInMs: 0 }, 'load without runs')
    await enqueueMany(kit, 2)
    await kit.start({ jobName: 'other' })
    await kit.claimWithin(limits)
    const { running, opensInMs } = await kit.limits.load(limits)
    assertEqual(running, 2, 'running')
    assert(opensInMs > FAR_MS - 60_000 && opensInMs <= FAR_MS, `opensInMs: is ${opensInMs}`)
    const fast = await kit.limits.load({ ...limits, rateLimit: { max: 3, per: FAR_MS } })
    assertEqual(fast.opensInMs, 0, 'opensInMs for who may begin more')
  },

  'a claim takes no run of a paused job, with limits or without': async (kit) => {
    const other = await kit.enqueue({ jobName: 'other' })
    const [first, ...rest] = await enqueueMany(kit, 3)
    await kit.enqueue({ concurrencyKey: 'key' })
    assertEqual(await kit.claimedIds({ limit: 1 }), [first], 'ids claimed before')
    await kit.limits.pause('job')
    await kit.limits.pause('job')
    assertEqual(await kit.limits.paused(), ['job'], 'paused jobs')
    assertEqual(await kit.claimedIds({ jobs: ['job', 'other'] }), [other.id], 'ids claimed')
    assertEqual(idsOf(await kit.claimWithin({ concurrency: 9 })), [], 'ids claimed under limits')
    assertEqual((await kit.run(first ?? '')).status, 'running', 'what ran before')
    await kit.limits.resume('job')
    await kit.limits.resume('job')
    assertEqual(await kit.limits.paused(), [], 'paused jobs afterwards')
    assertEqual((await kit.claimedIds()).slice(0, 2), rest, 'ids claimed afterwards')
  },

  'a claim finds what is behind many runs of a paused job': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 200 }, () => newRun({ jobName: 'paused', priority: 9 })))
    const keyed = { jobName: 'paused', concurrencyKey: 'key', priority: 9 }
    await kit.storage.enqueue(Array.from({ length: 100 }, () => newRun(keyed)))
    await kit.limits.pause('paused')
    const ids = await enqueueMany(kit, 2)
    assertEqual(await kit.claimedIds({ jobs: ['paused', 'job'] }), ids, 'ids claimed')
  },

  'pauses and starts are there after a restart': async (kit) => {
    const rateLimit = { max: 1, per: FAR_MS }
    await enqueueMany(kit, 2)
    await kit.enqueue({ jobName: 'paused' })
    await kit.claimWithin({ rateLimit })
    await kit.limits.pause('paused')
    await kit.reopen()
    assertEqual(await kit.limits.paused(), ['paused'], 'paused jobs')
    assertEqual(await kit.claimedIds({ jobs: ['paused'] }), [], 'ids claimed of the paused job')
    assertEqual(idsOf(await kit.claimWithin({ rateLimit })), [], 'ids claimed of the job with a rate')
  },

  'a job that goes on is a hint that runs are due': async (kit) => {
    await kit.limits.pause('job')
    const hints: Hint[] = []
    const stop = kit.storage.watch?.subscribe((hint) => hints.push(hint))
    await kit.limits.resume('job')
    if (stop === undefined) return
    // Some reads give it the time, without a clock.
    for (let read = 0; read < 200 && hints.length === 0; read++) await kit.storage.getRun(newId())
    assertEqual(hints[0], { kind: 'runs' }, 'the hint')
    stop()
  },
})

async function runsOf(kit: Kit, ids: readonly string[]): Promise<readonly RunRecord[]> {
  return Promise.all(ids.map((id) => kit.run(id)))
}
