import type { RunRecord } from '../../port'
import { assertEqual, assertMatches, itemAt } from '../assert'
import { newId, newRun, OUTCOME_KINDS, outcomeOf, stepWrite, template } from './builders'
import { casesOf } from './contract-case'
import { assertInstant } from './instants'
import type { Kit } from './kit'

async function types(kit: Kit, runId: string): Promise<string[]> {
  const events = await kit.events.getEvents(runId, {})
  assertEqual(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
    'seq of the events',
  )
  const run: RunRecord | null = await kit.storage.getRun(runId)
  assertEqual(run?.lastEventSequence, events.length, 'lastEventSequence of the run')
  return events.map(({ type }) => type)
}

const all = (...names: string[]) => names.map((name) => template(name))

export const EVENT_CASES = casesOf('events', 'events', {
  'an event shows what was written': async (kit) => {
    const payload = '{ "text":"ü \\u0000 \\ud800" ,"n":1.0}'
    const run = await kit.enqueue({ events: [template('run:trigger', payload)] })
    const event = itemAt(await kit.events.getEvents(run.id, {}), 0, 'events')
    assertMatches(event, { runId: run.id, seq: 1, type: 'run:trigger', payload }, 'the event')
    assertInstant(event.createdAt, 'createdAt')
    assertMatches(run, { lastEventSequence: 1 }, 'the run of the answer')
  },

  'every write appends its events under the next numbers': async (kit) => {
    const run = await kit.enqueue({ events: all('a', 'b') })
    const holder = await kit.hold({ events: all('c'), leaseMs: -1000 })
    const answer = await holder.commit({ events: all('d', 'e'), leaseMs: -1000 })
    assertEqual(answer.seq, 5, 'seq of the answer')
    await kit.recover({ events: { pending: all('f'), cancelled: all('no'), failed: all('no') } })
    const again = await kit.hold({ events: all('g') })
    await again.commit({
      events: all('h'),
      outcome: outcomeOf('fail', { events: all('i'), eventsIfCancelled: all('no') }),
    })
    await kit.storage.command({ kind: 'retry', runId: run.id, events: all('j') })
    await kit.storage.command({ kind: 'park', runId: run.id, reason: 'r', events: all('k') })
    await kit.storage.command({ kind: 'unpark', runId: run.id, events: all('l') })
    await kit.storage.command({ kind: 'cancel', runId: run.id, events: { cancelled: all('m'), requested: all('no') } })
    assertEqual(await types(kit, run.id), 'abcdefghijklm'.split(''), 'types of the events')
  },

  'each of the runs of a list gets its own events': async (kit) => {
    const [one, two] = [newRun({ events: all('a') }), newRun({ events: all('b', 'c') })]
    await kit.storage.enqueue([one, two])
    await kit.claim({ limit: 2, events: all('claimed') })
    assertEqual(await types(kit, one.id), ['a', 'claimed'], 'events of the first')
    assertEqual(await types(kit, two.id), ['b', 'c', 'claimed'], 'events of the second')
  },

  'leaving appends other events when it became cancelled': async (kit) => {
    for (const kind of OUTCOME_KINDS) {
      const events = { events: all('left'), eventsIfCancelled: all('cancelled') }
      const plain = await kit.start()
      await plain.commit({ events: all('step'), outcome: { ...outcomeOf(kind), ...events } })
      assertEqual(await types(kit, plain.id), ['step', 'left'], `events of ${kind}`)
      const asked = await kit.start()
      await kit.storage.command({
        kind: 'cancel',
        runId: asked.id,
        events: { cancelled: all('no'), requested: all('ask') },
      })
      const answer = await asked.commit({ events: all('step'), outcome: { ...outcomeOf(kind), ...events } })
      assertEqual(await types(kit, asked.id), ['ask', 'step', 'cancelled'], `events of ${kind} when asked to cancel`)
      assertEqual(answer.seq, 3, 'seq of the answer')
    }
  },

  'recovery appends the events of what came of it': async (kit) => {
    const events = { pending: all('pending'), cancelled: all('cancelled'), failed: all('failed') }
    const pending = await kit.startExpired()
    await kit.recover({ events })
    const cancelled = await kit.startExpired()
    await kit.order('cancel', cancelled.id)
    const failed = await kit.startExpired()
    const recovered = await kit.recover({ events, maxCrashes: 1 })
    assertEqual(await types(kit, pending.id), ['pending'], 'events of the pending run')
    assertEqual(await types(kit, cancelled.id), ['cancelled'], 'events of the cancelled run')
    assertEqual(await types(kit, failed.id), ['failed'], 'events of the failed run')
    assertEqual(
      recovered.map(({ lastEventSequence }) => lastEventSequence),
      [1, 1],
      'lastEventSequence of the answers',
    )
  },

  'failParked and removal of a run': async (kit) => {
    const run = await kit.enqueue({ events: all('a') })
    await kit.order('park', run.id)
    const detail = { name: 'GivenUp' }
    await kit.storage.command({ kind: 'failParked', runId: run.id, error: 'given up', detail, events: all('b') })
    assertEqual(await types(kit, run.id), ['a', 'b'], 'events')
    await kit.order('remove', run.id)
    assertEqual(await kit.events.getEvents(run.id, {}), [], 'events of the removed run')
  },

  'a write that does not happen appends nothing': async (kit) => {
    const run = await kit.enqueue({ idempotencyKey: 'k', events: all('a') })
    await kit.storage.enqueue([newRun({ idempotencyKey: 'k', events: all('no') })])
    await kit.storage.command({ kind: 'retry', runId: run.id, events: all('no') })
    await kit.storage.command({
      kind: 'cancel',
      runId: run.id,
      tenant: 'x',
      events: { cancelled: all('no'), requested: all('no') },
    })
    const holder = await kit.hold()
    await holder.send({ ...holder.next({ events: all('no') }), commitNo: 7 })
    assertEqual(await types(kit, run.id), ['a'], 'events')
  },

  'a commit sent twice appends once': async (kit) => {
    const holder = await kit.start()
    const commit = holder.next({ events: all('a'), outcome: outcomeOf('complete', { events: all('b') }) })
    const first = await holder.send(commit)
    assertEqual(await holder.send(commit), first, 'answer to the second')
    assertEqual(await types(kit, holder.id), ['a', 'b'], 'events')
  },

  'a child starts with its own events': async (kit) => {
    const holder = await kit.start()
    const child = newRun({ events: all('born') })
    await holder.commit({ steps: [stepWrite({ kind: 'trigger', child })], events: all('step') })
    assertEqual(await types(kit, child.id), ['born'], 'events of the child')
    assertEqual(await types(kit, holder.id), ['step'], 'events of the parent')
  },

  'numbers stay dense when many write at once': async (kit) => {
    const holder = await kit.start()
    const cancel = { kind: 'cancel', runId: holder.id, events: { cancelled: [], requested: all('ask') } } as const
    const writes = Array.from({ length: 8 }, () => kit.storage.command(cancel))
    await Promise.all([...writes, holder.commit({ events: all('a', 'b', 'c') })])
    assertEqual((await types(kit, holder.id)).length, 11, 'number of events')
  },

  'reading goes on after a number, up to a limit': async (kit) => {
    const holder = await kit.start()
    await holder.commit({ events: all('a', 'b', 'c', 'd', 'e') })
    const seqs = async (options: { after?: number; limit?: number }) =>
      (await kit.events.getEvents(holder.id, options)).map(({ seq }) => seq)
    assertEqual(await seqs({ after: 0 }), [1, 2, 3, 4, 5], 'seq after 0')
    assertEqual(await seqs({ after: 2, limit: 2 }), [3, 4], 'seq after 2, two of them')
    assertEqual(await seqs({ after: 5 }), [], 'seq after the last')
    assertEqual(await seqs({ limit: 1 }), [1], 'the first')
  },

  'events are read by their tenant only': async (kit) => {
    const run = await kit.enqueue({ tenant: 'acme', events: all('a') })
    assertEqual((await kit.events.getEvents(run.id, { tenant: 'acme' })).length, 1, 'events read by the tenant')
    assertEqual(await kit.events.getEvents(run.id, { tenant: '' }), [], 'events read by another tenant')
    assertEqual(await kit.events.getEvents(newId(), {}), [], 'events of an unknown run')
  },

  'tail reads what is new of many runs': async (kit) => {
    const quiet = await kit.enqueue({ jobName: 'q' })
    const [one, two] = [await kit.start(), await kit.start()]
    await one.commit({ events: all('a', 'b', 'c') })
    await two.commit({ events: all('d'), outcome: outcomeOf('complete', { events: all('e') }) })
    const tails = await kit.events.tail(
      [
        { runId: one.id, after: 1 },
        { runId: newId(), after: 0 },
        { runId: two.id, after: 2 },
        { runId: quiet.id, after: 0 },
      ],
      1,
    )
    const seen = new Map(tails.map((tail) => [tail.runId, tail]))
    assertEqual(tails.length, 3, 'runs answered')
    assertMatches(seen.get(one.id) ?? null, { status: 'running', lastSeq: 3 }, 'the first run')
    assertEqual(
      seen.get(one.id)?.events.map(({ type, seq }) => [type, seq]),
      [['b', 2]],
      'events of the first run',
    )
    assertMatches(seen.get(two.id) ?? null, { status: 'completed', lastSeq: 2, events: [] }, 'the second run')
    assertMatches(seen.get(quiet.id) ?? null, { status: 'pending', lastSeq: 0, events: [] }, 'the quiet run')
    assertEqual(await kit.events.tail([], 10), [], 'tail of nothing')
  },

  'tail brings nothing to who is past the last number': async (kit) => {
    const run = await kit.enqueue({ events: all('a') })
    const [tail] = await kit.events.tail([{ runId: run.id, after: 9 }], 10)
    assertMatches(tail ?? null, { runId: run.id, status: 'pending', lastSeq: 1, events: [] }, 'the answer')
  },

  'tail shows an ended run together with its last event': async (kit) => {
    const holder = await kit.start()
    const look = async () => itemAt(await kit.events.tail([{ runId: holder.id, after: 0 }], 10), 0, 'tails')
    const looks = [look(), look()]
    const ended = holder.commit({ events: all('a'), outcome: outcomeOf('complete', { events: all('end') }) })
    for (let n = 0; n < 8; n++) looks.push(look())
    await ended
    looks.push(look())
    for (const { status, lastSeq, events } of await Promise.all(looks)) {
      const seen = { lastSeq, types: events.map(({ type }) => type) }
      const expected = status === 'running' ? { lastSeq: 0, types: [] } : { lastSeq: 2, types: ['a', 'end'] }
      assertEqual(seen, expected, `what was seen of the ${status} run`)
    }
  },

  'a payload of 256 KiB is kept': async (kit) => {
    const payload = JSON.stringify('ü'.repeat(128 * 1024 - 1))
    const run = await kit.enqueue({ events: [template('big', payload)] })
    const event = itemAt(await kit.events.getEvents(run.id, {}), 0, 'events')
    assertEqual(event.payload === payload, true, 'whether the payload came back unchanged')
  },
})
