import type { NewSignal, SignalAnswer } from '../../port'
import { assert, assertEqual, assertMatches, itemAt } from '../assert'
import { newId, outcomeOf, stepWrite, template, waitingStep } from './builders'
import { casesOf } from './contract-case'
import { assertInstant } from './instants'
import type { Kit } from './kit'

function send(kit: Kit, runId: string, over: Partial<NewSignal> = {}): Promise<SignalAnswer> {
  return kit.signals.send({ runId, name: 'approved', payload: 'true', dedupeKey: null, events: [], ...over })
}

async function unread(kit: Kit, runId: string): Promise<(string | null)[]> {
  return (await kit.signals.getUnread(runId)).map(({ payload }) => payload)
}

export const SIGNAL_CASES = casesOf('signals', 'signals', {
  'a signal shows what was sent': async (kit) => {
    const run = await kit.enqueue()
    const payload = '{ "text":"ü \\u0000 \\ud800" ,"n":1.0}'
    assertEqual(await send(kit, run.id, { name: 'a "b"', payload }), { kept: true, position: 1 }, 'answer')
    const signal = itemAt(await kit.signals.getUnread(run.id), 0, 'signals')
    assertMatches(signal, { runId: run.id, position: 1, name: 'a "b"', payload }, 'the signal')
    assertInstant(signal.createdAt, 'createdAt')
    const after = await kit.run(run.id)
    assertMatches(after, { wakes: 1, status: 'pending', availableAt: run.availableAt }, 'the run')
    assert(after.version > run.version, 'version should have grown')
  },

  'signals stay in the order of arrival': async (kit) => {
    const run = await kit.enqueue()
    for (const payload of ['1', null, 'null', '4']) await send(kit, run.id, { payload })
    await send(kit, run.id, { payload: '5', name: 'other' })
    assertEqual(await unread(kit, run.id), ['1', null, 'null', '4', '5'], 'payloads')
    const positions = (await kit.signals.getUnread(run.id)).map(({ position }) => position)
    assertEqual(positions, [1, 2, 3, 4, 5], 'positions')
  },

  'signals sent at once all arrive': async (kit) => {
    const run = await kit.enqueue()
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => send(kit, run.id, { payload: String(index) })),
    )
    const positions = answers.map((answer) => (answer.kept ? answer.position : 0))
    assertEqual(
      positions.sort((a, b) => a - b),
      Array.from({ length: 12 }, (_, index) => index + 1),
      'positions',
    )
    assertEqual((await unread(kit, run.id)).length, 12, 'number of signals')
    assertMatches(await kit.run(run.id), { wakes: 12 }, 'the run')
  },

  'a second signal with the same key is not kept': async (kit) => {
    const [run, other] = [await kit.enqueue(), await kit.enqueue()]
    await send(kit, run.id, { dedupeKey: 'k', payload: '1' })
    const before = await kit.snapshot(run.id)
    const again = await send(kit, run.id, { dedupeKey: 'k', payload: '2', events: [template('no')] })
    assertEqual(again, { kept: false, reason: 'duplicate' }, 'answer to the second')
    assertEqual(await kit.snapshot(run.id), before, 'the run')
    assertMatches(await send(kit, other.id, { dedupeKey: 'k' }), { kept: true }, 'answer for another run')
    assertMatches(await send(kit, run.id, { dedupeKey: 'l' }), { kept: true }, 'answer for another key')
  },

  'of 8 signals at once with the same key one is kept': async (kit) => {
    const run = await kit.enqueue()
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(kit, run.id, { dedupeKey: 'k' })))
    assertEqual(answers.filter(({ kept }) => kept).length, 1, 'signals kept')
    assertMatches(await kit.run(run.id), { wakes: 1 }, 'the run')
  },

  'a key counts after its signal was used up': async (kit) => {
    const holder = await kit.start()
    await send(kit, holder.id, { dedupeKey: 'k' })
    await holder.commit({ consumedSignals: [1], steps: [stepWrite()] })
    assertEqual(await send(kit, holder.id, { dedupeKey: 'k' }), { kept: false, reason: 'duplicate' }, 'answer')
  },

  'a commit uses signals up': async (kit) => {
    const holder = await kit.start()
    for (const payload of ['1', '2', '3']) await send(kit, holder.id, { payload })
    await holder.commit({ consumedSignals: [1, 3], steps: [stepWrite({ name: 'wait' })] })
    assertEqual(await unread(kit, holder.id), ['2'], 'payloads left')
    assertEqual(await send(kit, holder.id, { payload: '4' }), { kept: true, position: 4 }, 'the next position')
  },

  'a commit uses up the signals of its own run only': async (kit) => {
    const [one, other] = [await kit.start(), await kit.start()]
    for (const holder of [one, other]) await send(kit, holder.id)
    await one.commit({ consumedSignals: [1] })
    assertEqual([await unread(kit, one.id), await unread(kit, other.id)], [[], ['true']], 'payloads left')
  },

  'a lost commit uses nothing up': async (kit) => {
    const holder = await kit.start()
    await send(kit, holder.id)
    const lost = holder.next({ consumedSignals: [1], lease: { ...holder.lease, token: 'other' } })
    assertEqual(await holder.send(lost), { kept: false }, 'answer')
    assertEqual(await unread(kit, holder.id), ['true'], 'payloads left')
  },

  'a commit sent twice does not use up what came between': async (kit) => {
    const holder = await kit.start()
    await send(kit, holder.id)
    const commit = holder.next({ consumedSignals: [1], steps: [stepWrite()] })
    await holder.send(commit)
    await send(kit, holder.id, { payload: '2' })
    assertMatches(await holder.send(commit), { kept: true, wakes: 2 }, 'answer to the second')
    assertEqual(await unread(kit, holder.id), ['2'], 'payloads left')
  },

  'a signal makes a suspended run due': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    const wait = waitingStep({
      name: 'nap',
      kind: 'signal',
      waitName: 'approved',
      due: { at: '2099-01-01T00:00:00.000Z' },
    })
    await holder.leave('suspend', {}, { steps: [wait] })
    await send(kit, holder.id)
    const run = await kit.run(holder.id)
    assertMatches(run, { status: 'pending', wakes: 1, availableAt: run.createdAt }, 'the run')
    assertEqual(await kit.claimedIds(), [run.id], 'ids claimed')
  },

  'a signal does not make due what waits for something else': async (kit) => {
    for (const kind of ['retryLater', 'park'] as const) {
      const holder = await kit.start({ jobName: 'job' })
      const { availableAt, waitingFor } = await holder.leave(kind)
      await send(kit, holder.id)
      assertMatches(await kit.run(holder.id), { wakes: 1, availableAt, waitingFor }, `the run after ${kind}`)
    }
    assertEqual(await kit.claim(), [], 'runs claimed')
  },

  'a signal between the last look and the suspension is not missed': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    const { wakes } = await holder.commit({ steps: [waitingStep({ kind: 'signal', waitName: 'approved' })] })
    await send(kit, holder.id)
    const run = await holder.leave('suspend', { wakesSeen: wakes })
    assertMatches(run, { status: 'pending', availableAt: run.createdAt }, 'the run')
    assertEqual(await kit.claimedIds(), [run.id], 'ids claimed')
  },

  'of a signal and a suspension at once none is missed': async (kit) => {
    for (let round = 0; round < 8; round++) {
      const holder = await kit.start({ jobName: 'job' })
      await Promise.all([holder.leave('suspend', { wakesSeen: 0 }), send(kit, holder.id)])
      assertEqual(await kit.claimedIds(), [holder.id], 'ids claimed')
    }
  },

  'a running run learns of a signal by its next answer': async (kit) => {
    const holder = await kit.start()
    await send(kit, holder.id)
    const [renewed] = await kit.storage.renew([holder.lease], 60_000)
    assertMatches(renewed ?? null, { kept: true, wakes: 1 }, 'answer to the renewal')
    assertMatches(await holder.commit(), { wakes: 1 }, 'answer to the commit')
  },

  'a key that is known is no error after the end': async (kit) => {
    for (const kind of ['complete', 'fail', 'timeOut', 'cancelled'] as const) {
      const holder = await kit.start()
      await send(kit, holder.id, { dedupeKey: 'k' })
      await holder.leave(kind, {}, { consumedSignals: [1] })
      const before = await kit.snapshot(holder.id)
      const again = await send(kit, holder.id, { dedupeKey: 'k', events: [template('no')] })
      assertEqual(again, { kept: false, reason: 'duplicate' }, `answer after ${kind}`)
      const other = await send(kit, holder.id, { dedupeKey: 'l' })
      assertMatches(other as object, { kept: false, reason: 'wrong-state' } as object, `answer to another key`)
      assertEqual(await kit.snapshot(holder.id), before, `the run after ${kind}`)
    }
  },

  'a signal to an ended run is refused': async (kit) => {
    for (const kind of ['complete', 'fail', 'timeOut', 'cancelled'] as const) {
      const holder = await kit.start()
      await holder.leave(kind)
      const before = await kit.snapshot(holder.id)
      const answer = await send(kit, holder.id, { events: [template('no')] })
      assertMatches(answer as object, { kept: false, reason: 'wrong-state' } as object, `answer after ${kind}`)
      assert(!answer.kept && 'run' in answer && answer.run.id === holder.id, 'the answer should carry the run')
      assertEqual(await kit.snapshot(holder.id), before, `the run after ${kind}`)
    }
  },

  'a signal to a run that is not there is not found': async (kit) => {
    const notFound = { kept: false, reason: 'not-found' }
    assertEqual(await send(kit, newId()), notFound, 'answer')
    const run = await kit.enqueue({ tenant: 'acme' })
    assertEqual(await send(kit, run.id, { tenant: '' }), notFound, 'answer to another tenant')
    assertEqual(await unread(kit, run.id), [], 'signals of the run')
    assertMatches(await send(kit, run.id, { tenant: 'acme' }), { kept: true }, 'answer to its tenant')
    assertEqual(await unread(kit, newId()), [], 'signals of an unknown run')
  },

  'signals survive crash, wait and retry by hand': async (kit) => {
    const first = await kit.startExpired({ jobName: 'job' })
    await send(kit, first.id, { payload: '1' })
    await kit.recover()
    const second = await kit.hold()
    await second.leave('fail')
    await kit.order('retry', first.id)
    assertEqual(await unread(kit, first.id), ['1'], 'payloads')
  },

  'signals go with their run': async (kit) => {
    const holder = await kit.start()
    await send(kit, holder.id, { dedupeKey: 'k' })
    await holder.leave('complete')
    await kit.order('remove', holder.id)
    assertEqual(await unread(kit, holder.id), [], 'signals')
    await kit.enqueue({ id: holder.id })
    assertMatches(await send(kit, holder.id, { dedupeKey: 'k' }), { kept: true, position: 1 }, 'a new run under its id')
  },

  'events of a signal are appended to the run': async (kit) => {
    if (kit.storage.events === undefined) return
    const holder = await kit.start()
    await send(kit, holder.id, { events: [template('signal:received')] })
    await holder.commit({ outcome: outcomeOf('complete', { events: [template('run:complete')] }) })
    const events = await kit.events.getEvents(holder.id, {})
    assertEqual(
      events.map(({ seq, type }) => [seq, type]),
      [
        [1, 'signal:received'],
        [2, 'run:complete'],
      ],
      'events',
    )
  },
})
