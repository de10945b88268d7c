import { assert, assertEqual, assertMatches } from '../assert'
import { FAR_MS, newRun, OUTCOME_KINDS, outcomeOf, waitingStep } from './builders'
import { casesOf } from './contract-case'

const KEYED = { concurrencyKey: 'key', jobName: 'job' } as const
const HELD = { ...KEYED, holdKeyWhileWaiting: true } as const

export const SLOT_CASES = casesOf('required', 'concurrency key', {
  'with a limit of 1 the second run waits for the first': async (kit) => {
    const first = await kit.start(KEYED)
    assertMatches(first.run, { concurrencySlot: 0 }, 'the first run')
    const second = await kit.enqueue(KEYED)
    assertEqual(await kit.claim({ limit: 10 }), [], 'runs claimed while the first one runs')
    await first.leave('complete')
    assertEqual(await kit.claimedIds(), [second.id], 'ids claimed afterwards')
  },

  'with a limit of 3 three runs hold three slots': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 5 }, () => newRun({ ...KEYED, concurrencyLimit: 3 })))
    const claimed = [...(await kit.claim({ limit: 2 })), ...(await kit.claim({ limit: 10 }))]
    assertEqual(claimed.map(({ concurrencySlot }) => concurrencySlot).sort(), [0, 1, 2], 'slots')
    assertEqual(await kit.claim({ limit: 10 }), [], 'runs claimed beyond the limit')
  },

  'a run without a key holds no slot': async (kit) => {
    assertMatches((await kit.start()).run, { concurrencySlot: null }, 'the claimed run')
  },

  'keys of different tenants and different keys are apart': async (kit) => {
    await kit.storage.enqueue([
      newRun(KEYED),
      newRun({ ...KEYED, tenant: 'b' }),
      newRun({ ...KEYED, concurrencyKey: 'other' }),
    ])
    assertEqual((await kit.claim({ limit: 10 })).length, 3, 'runs claimed')
  },

  'a key is shared by all jobs of the tenant': async (kit) => {
    await kit.start(KEYED)
    await kit.enqueue({ ...KEYED, jobName: 'other' })
    assertEqual(await kit.claim({ jobs: ['job', 'other'], limit: 10 }), [], 'runs claimed')
  },

  'the limit that counts is that of the run to be claimed': async (kit) => {
    await kit.start(KEYED)
    await kit.enqueue({ ...KEYED, priority: 9 })
    const wider = await kit.enqueue({ ...KEYED, concurrencyLimit: 2 })
    const claimed = await kit.claim({ limit: 10 })
    assertEqual(
      claimed.map(({ id, concurrencySlot }) => [id, concurrencySlot]),
      [[wider.id, 1]],
      'runs claimed',
    )
  },

  'blocked runs do not hold up those behind them': async (kit) => {
    await kit.start(KEYED)
    await kit.storage.enqueue(Array.from({ length: 200 }, () => newRun({ ...KEYED, priority: 9 })))
    const free = await kit.enqueue()
    assertEqual(await kit.claimedIds(), [free.id], 'ids claimed')
  },

  'blocked runs go in claim order': async (kit) => {
    const first = await kit.start(KEYED)
    const [low, high] = [await kit.enqueue(KEYED), await kit.enqueue({ ...KEYED, priority: 1 })]
    await first.leave('complete')
    assertEqual(await kit.claimedIds(), [high.id], 'ids claimed')
    await kit.order('cancel', high.id)
    await kit.recover({ deadWorkerId: 'worker-1' })
    assertEqual(await kit.claimedIds(), [low.id], 'ids claimed after that one')
  },

  'of 16 claimers at once no more than the limit succeed': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 16 }, () => newRun({ ...KEYED, concurrencyLimit: 3 })))
    const claimed = (await Promise.all(Array.from({ length: 16 }, () => kit.claim({ limit: 1 })))).flat()
    const rest = await kit.claim({ limit: 16 })
    const slots = [...claimed, ...rest].map(({ concurrencySlot }) => concurrencySlot)
    assertEqual(slots.sort(), [0, 1, 2], 'slots taken in the end')
  },

  'every way out of running gives the slot back': async (kit) => {
    for (const kind of OUTCOME_KINDS) {
      const concurrencyKey = `key-${kind}`
      const holder = await kit.start({ concurrencyKey })
      await holder.commit({ outcome: outcomeOf(kind) })
      assertMatches(await kit.run(holder.id), { concurrencySlot: null }, `the run after ${kind}`)
      await kit.start({ concurrencyKey })
    }
  },

  'an expired lease keeps its slot until it is recovered': async (kit) => {
    const first = await kit.startExpired(KEYED)
    const second = await kit.enqueue({ ...KEYED, priority: 1 })
    assertEqual(await kit.claim(), [], 'runs claimed before recovery')
    const [recovered] = await kit.recover()
    assertMatches(recovered ?? null, { id: first.id, concurrencySlot: null }, 'the recovered run')
    assertEqual(await kit.claimedIds(), [second.id], 'ids claimed after recovery')
  },

  'a run that was not claimed yet holds nothing': async (kit) => {
    await kit.enqueue({ ...HELD, start: { afterMs: FAR_MS } })
    const run = await kit.enqueue(HELD)
    assertEqual(await kit.claimedIds(), [run.id], 'ids claimed')
  },

  'a kept slot stays through every wait': async (kit) => {
    for (const kind of ['retryLater', 'suspend', 'release', 'park'] as const) {
      const concurrencyKey = `key-${kind}`
      const holder = await kit.start({ ...HELD, concurrencyKey, jobName: `job-${kind}` })
      await holder.commit({ outcome: outcomeOf(kind) })
      assertMatches(await kit.run(holder.id), { status: 'pending', concurrencySlot: 0 }, `the run after ${kind}`)
      await kit.enqueue({ ...KEYED, concurrencyKey })
      assertEqual(await kit.claim({ limit: 10 }), [], `runs claimed after ${kind}`)
    }
  },

  'a kept slot stays through a crash': async (kit) => {
    const first = await kit.startExpired(HELD)
    await kit.recover()
    assertMatches(await kit.run(first.id), { status: 'pending', concurrencySlot: 0 }, 'the recovered run')
    await kit.enqueue({ ...KEYED, priority: 1 })
    assertEqual(await kit.claimedIds(), [first.id], 'ids claimed')
  },

  'a run goes on with the slot it kept': async (kit) => {
    const limit = { concurrencyLimit: 2 }
    await kit.start({ ...HELD, ...limit })
    const second = await kit.start({ ...HELD, ...limit })
    await second.leave('suspend', {}, { steps: [waitingStep({ name: 'nap', due: { inMs: -1 } })] })
    await kit.order('cancel', (await kit.enqueue({ ...HELD, ...limit, start: { afterMs: FAR_MS } })).id)
    const again = await kit.hold()
    assertMatches(again.run, { id: second.id, concurrencySlot: 1 }, 'the run that goes on')
  },

  'a kept slot is given back at every end': async (kit) => {
    for (const kind of ['complete', 'fail', 'timeOut', 'cancelled'] as const) {
      const holder = await kit.start(HELD)
      assertMatches(await holder.leave(kind), { concurrencySlot: null }, `the run after ${kind}`)
    }
    const waiting = await kit.start(HELD)
    await waiting.leave('park')
    assertMatches(await kit.order('failParked', waiting.id), { concurrencySlot: null }, 'the run failed by hand')
    const cancelled = await kit.start(HELD)
    await cancelled.leave('suspend')
    assertMatches(await kit.order('cancel', cancelled.id), { concurrencySlot: null }, 'the cancelled run')
    await kit.start(HELD)
  },

  'a run retried by hand takes a slot anew': async (kit) => {
    const first = await kit.start(HELD)
    await first.leave('fail')
    const second = await kit.start(HELD)
    await kit.order('retry', first.id)
    assertEqual(await kit.claim({ limit: 10 }), [], 'runs claimed')
    await second.leave('complete')
    const claimed = await kit.claim({ limit: 10 })
    assert(claimed.length === 1 && claimed[0]?.concurrencySlot === 0, 'the retried run should get slot 0')
  },

  'a slot in the middle is used again': async (kit) => {
    const runs = Array.from({ length: 4 }, () => newRun({ ...KEYED, concurrencyLimit: 3 }))
    await kit.storage.enqueue(runs.slice(0, 1))
    await kit.hold()
    await kit.storage.enqueue(runs.slice(1, 2))
    const middle = await kit.hold()
    await kit.storage.enqueue(runs.slice(2, 3))
    await kit.hold()
    await middle.leave('complete')
    await kit.storage.enqueue(runs.slice(3))
    assertMatches((await kit.hold()).run, { concurrencySlot: middle.run.concurrencySlot }, 'the fourth run')
  },
})
