import type { Delivery, Lead, MessageRecord, NewGathered, RipeGroup } from '../../port'
import { assert, assertEqual, assertMatches, itemAt } from '../assert'
import { FAR_MS, newRun } from './builders'
import { casesOf, type ContractCase } from './contract-case'
import { assertInstant } from './instants'
import type { Kit } from './kit'
import { deliveryOf, FUTURE, leadOf, messageOf, newMessage, publish, waitingIds } from './messages'

export const INBOX_CASES = casesOf('cluster', 'inbox', {
  'a message waits for its delivery': async (kit) => {
    const wanted = newMessage({ tenant: 'acme', payload: null, dedupeKey: 'k' })
    const [answer] = await kit.cluster.inbox.publish([wanted])
    const { start: _start, ...content } = wanted
    assertMatches(answer?.message ?? null, { ...content, processedAt: null, wanted: 0, round: 0 }, 'the answer')
    const { createdAt, availableAt } = await messageOf(kit, wanted.id)
    assertInstant(createdAt, 'createdAt')
    assertEqual(availableAt, createdAt, 'availableAt')
    assertEqual(await waitingIds(kit), [wanted.id], 'what waits')
    assertEqual(await kit.cluster.inbox.counts({}), { waiting: 1, processed: 0, unwanted: 0 }, 'counts')
  },

  'a dedupe key is taken once in a tenant, and the same message may be sent again': async (kit) => {
    const first = newMessage({ dedupeKey: 'k' })
    const second = newMessage({ dedupeKey: 'k', payload: '2' })
    const other = newMessage({ dedupeKey: 'k', tenant: 'acme' })
    const answers = await kit.cluster.inbox.publish([first, second, other, newMessage(), newMessage()])
    assertEqual(
      answers.map(({ created }) => created),
      [true, false, true, true, true],
      'created',
    )
    assertEqual(
      answers.slice(0, 3).map(({ message }) => message.id),
      [first.id, first.id, other.id],
      'ids',
    )
    const [again, late] = await kit.cluster.inbox.publish([first, newMessage({ dedupeKey: 'k' })])
    assertEqual([again?.created, again?.message.id, late?.created], [true, first.id, false], 'sent again')
    assertEqual((await waitingIds(kit)).length, 4, 'messages')
  },

  'messages are delivered in the order of their times, then of their ids': async (kit) => {
    const early = { start: { at: '2026-01-01T00:00:00.000Z' } }
    const ids = [newMessage(), newMessage(), newMessage(early)]
    await kit.cluster.inbox.publish(ids)
    const order = ids.map(({ id }) => id).sort()
    const later = await publish(kit, { start: { at: FUTURE } })
    const delayed = await publish(kit, { start: { afterMs: FAR_MS } })
    assertEqual(await waitingIds(kit), order, 'what waits')
    assertEqual(await waitingIds(kit, 2), order.slice(0, 2), 'the first two')
    assertEqual(later.availableAt, FUTURE, 'availableAt')
    const { nextInMs } = await kit.cluster.inbox.waiting(10)
    assert(nextInMs !== null && nextInMs > FAR_MS - 60_000 && nextInMs <= FAR_MS, `nextInMs: is ${nextInMs}`)
    assert(delayed.availableAt > delayed.createdAt, 'availableAt: should be later')
  },

  'a delivery creates its runs and marks its message': async (kit) => {
    const message = await publish(kit)
    const events = [{ type: 'run:trigger', payload: '{}' }]
    const runs = [newRun({ labels: { a: 'b' }, events }), newRun({ jobName: 'other', payload: null })]
    const answers = await kit.cluster.inbox.deliver(await leadOf(kit), [deliveryOf(message, runs)])
    assertEqual(answers, [{ kept: true, created: runs.map(({ id }) => id) }], 'the answer')
    const after = await messageOf(kit, message.id)
    assertInstant(after.processedAt, 'processedAt')
    assertEqual([after.wanted, after.payload], [2, message.payload], 'the message')
    assertMatches(
      await kit.run(runs[0]?.id ?? ''),
      { status: 'pending', labels: { a: 'b' }, lastEventSequence: 1 },
      'run',
    )
    assertEqual(await waitingIds(kit), [], 'what waits')
  },

  'many are delivered in one write, and one that nobody wants is counted': async (kit) => {
    const messages = [await publish(kit), await publish(kit), await publish(kit)]
    const [one, other, third] = messages as [MessageRecord, MessageRecord, MessageRecord]
    const stale = { ...deliveryOf(other), round: 7 }
    const answers = await kit.cluster.inbox.deliver(await leadOf(kit), [deliveryOf(one), stale, deliveryOf(third, [])])
    assertEqual(
      answers.map(({ kept }) => kept),
      [true, false, true],
      'kept',
    )
    assertEqual(itemAt(answers, 1, 'answers').created, [], 'runs of the stale one')
    assertEqual(await kit.cluster.inbox.counts({}), { waiting: 1, processed: 2, unwanted: 1 }, 'counts')
    assertEqual(
      await kit.cluster.inbox.counts({ tenant: 'acme' }),
      { waiting: 0, processed: 0, unwanted: 0 },
      'of a tenant',
    )
    const unwanted = await kit.cluster.inbox.list({ isUnwanted: true })
    assertEqual(
      unwanted.map(({ id }) => id),
      [third.id],
      'unwanted messages',
    )
    assertEqual((await kit.storage.getRuns({})).length, 1, 'runs')
  },

  'a delivery whose answer was lost does nothing when it is sent again': async (kit) => {
    const message = await publish(kit)
    const lead = await leadOf(kit)
    const delivery = deliveryOf(message)
    await kit.cluster.inbox.deliver(lead, [delivery])
    for (const again of [delivery, deliveryOf(message)]) {
      assertEqual(await kit.cluster.inbox.deliver(lead, [again]), [{ kept: false, created: [] }], 'the answer')
    }
    assertEqual((await kit.storage.getRuns({})).length, 1, 'runs')
  },

  'nobody delivers without the lead': async (kit) => {
    const message = await publish(kit)
    const lead = await leadOf(kit, 'w-1', -1000)
    const next = await leadOf(kit, 'w-2')
    for (const lost of [lead, { ...next, epoch: 1 }, { ...next, name: 'schedules' }]) {
      assertEqual((await kit.cluster.inbox.deliver(lost, [deliveryOf(message)]))[0]?.kept, false, 'kept')
    }
    assertEqual((await kit.storage.getRuns({})).length, 0, 'runs')
    assertEqual((await kit.cluster.inbox.deliver(next, [deliveryOf(message)]))[0]?.kept, true, 'who has it')
  },

  'two who deliver at once create the runs of one': async (kit) => {
    const messages = await Promise.all(Array.from({ length: 20 }, () => publish(kit)))
    const lead = await leadOf(kit)
    const deliveries = () => messages.map((each) => deliveryOf(each))
    const answers = await Promise.all(Array.from({ length: 4 }, () => kit.cluster.inbox.deliver(lead, deliveries())))
    assertEqual(answers.flat().filter(({ kept }) => kept).length, 20, 'deliveries')
    assertEqual((await kit.storage.getRuns({})).length, 20, 'runs')
  },

  'what jobs want is told with the messages they may want': async (kit) => {
    const { inbox } = kit.cluster
    const wish = (jobName: string, type: string, definition = '{}') => ({ jobName, type, definition })
    await inbox.subscribe(['a', 'b'], [wish('a', 'user.created'), wish('a', 'user.left'), wish('b', 'user.created')])
    await inbox.subscribe(['b', 'c'], [wish('b', 'user.created', '{"where":1}')])
    await publish(kit)
    const told = async () =>
      [...(await inbox.waiting(10)).subscriptions].sort((x, y) => (x.jobName < y.jobName ? -1 : 1))
    assertEqual(await told(), [wish('a', 'user.created'), wish('b', 'user.created', '{"where":1}')], 'subscriptions')
    await inbox.subscribe(['a'], [])
    await kit.reopen()
    assertEqual(await told(), [wish('b', 'user.created', '{"where":1}')], 'after a restart')
  },

  'a job that is forgotten wants nothing of any type, and others want what they wanted': async (kit) => {
    const { inbox } = kit.cluster
    const wish = (jobName: string, type: string) => ({ jobName, type, definition: '{}' })
    await inbox.subscribe(['gone', 'stays'], [wish('gone', 'x'), wish('gone', 'y'), wish('stays', 'x')])
    await inbox.forget('gone')
    await inbox.forget('unknown')
    for (const type of ['x', 'y']) await publish(kit, { type })
    assertEqual((await inbox.waiting(10)).subscriptions, [wish('stays', 'x')], 'subscriptions')
  },

  'what is gathered is told with what its jobs want': async (kit) => {
    const { inbox } = kit.cluster
    const wish = (jobName: string) => ({ jobName, type: 'x', definition: `{"jobVersion":"of ${jobName}"}` })
    await inbox.subscribe(['a', 'b', 'other'], [wish('a'), wish('b'), wish('other')])
    assertEqual((await inbox.ripe(10)).subscriptions, [], 'of nothing')
    const gather = (jobName: string) => ({ jobName, key: '', mode: 'last', waitMs: -1000, max: 0 }) as const
    const delivery = { ...deliveryOf(await publish(kit), []), wanted: 3 }
    const gathered = [gather('a'), gather('b'), gather('left the code')]
    await inbox.deliver(await leadOf(kit), [{ ...delivery, gathered }])
    const { groups, subscriptions } = await inbox.ripe(10)
    assertEqual(groups.map(({ jobName }) => jobName).sort(), ['a', 'b', 'left the code'], 'groups')
    assertEqual(
      [...subscriptions].sort((x, y) => (x.jobName < y.jobName ? -1 : 1)),
      [wish('a'), wish('b')],
      'subscriptions',
    )
  },

  'messages are listed, the oldest first, in pages': async (kit) => {
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push((await publish(kit)).id)
    const { inbox } = kit.cluster
    const all = await inbox.list({})
    assertEqual(
      all.map(({ id }) => id),
      ids,
      'all',
    )
    const page = await inbox.list({ limit: 2, after: itemAt(all, 1, 'messages') })
    assertEqual(
      page.map(({ id }) => id),
      ids.slice(2, 4),
      'the second page',
    )
    assertEqual((await inbox.list({ isProcessed: true })).length, 0, 'delivered ones')
    assertEqual((await inbox.list({ types: ['none'] })).length, 0, 'of another type')
  },

  'a purge takes delivered messages, and frees their keys': async (kit) => {
    const delivered = await publish(kit, { dedupeKey: 'k' })
    const waiting = await publish(kit)
    await kit.cluster.inbox.deliver(await leadOf(kit), [deliveryOf(delivered)])
    assertEqual(await kit.cluster.inbox.purge(null, { olderThanMs: FAR_MS, limit: 10 }), 0, 'young ones')
    assertEqual(await kit.cluster.inbox.purge(null, { olderThanMs: -1000, limit: 10 }), 1, 'old ones')
    assertEqual(await waitingIds(kit), [waiting.id], 'what is left')
    assertEqual((await publish(kit, { dedupeKey: 'k' })).dedupeKey, 'k', 'the key')
  },

  'who has lost the lead purges nothing, and who does it by hand needs none': async (kit) => {
    const lost = await leadOf(kit, 'w-1', -1000)
    const lead = await leadOf(kit, 'w-2')
    const purge = (by: Lead | null) => kit.cluster.inbox.purge(by, { olderThanMs: -FAR_MS, limit: 1 })
    for (let n = 0; n < 2; n++) await kit.cluster.inbox.deliver(lead, [deliveryOf(await publish(kit))])
    assertEqual(await purge(lost), 0, 'by who led before')
    assertEqual(await purge({ ...lead, epoch: lead.epoch - 1 }), 0, 'under an older epoch')
    assertEqual(await purge({ ...lead, workerId: 'w-1' }), 0, 'by another one')
    assertEqual((await kit.cluster.inbox.counts({})).processed, 2, 'messages')
    assertEqual([await purge(lead), await purge(null), await purge(lead)], [1, 1, 0], 'by who leads, and by hand')
  },

  'messages that are gathered for their last one make a run when none has come for a while': async (kit) => {
    const lead = await leadOf(kit)
    const [one, two] = [await publish(kit, { payload: '1' }), await publish(kit, { payload: '2' })]
    const gather = (waitMs: number, key = 'k') => ({ jobName: 'job', key, mode: 'last', waitMs, max: 0 }) as const
    await kit.cluster.inbox.deliver(lead, [gathering(one, gather(-1000)), gathering(two, gather(FAR_MS))])
    const { groups, nextInMs } = await kit.cluster.inbox.ripe(10)
    assertEqual(groups, [], 'groups')
    assert(nextInMs !== null && nextInMs > FAR_MS - 60_000 && nextInMs <= FAR_MS, `nextInMs: is ${nextInMs}`)
    const three = await publish(kit, { payload: '3', tenant: 'acme' })
    await kit.cluster.inbox.deliver(lead, [gathering(three, gather(-1000))])
    assertMatches((await ripeGroups(kit))[0] ?? null, { jobName: 'job', key: 'k', mode: 'last', tenant: 'acme' }, 'it')
    assertEqual(await ripePayloads(kit), [['3']], 'payloads')
    assertEqual((await messageOf(kit, one.id)).wanted, 1, 'wanted')
  },

  'messages that are gathered make a run when there are enough, or some time after the first': async (kit) => {
    const lead = await leadOf(kit)
    const gather = (key: string, waitMs: number) => ({ jobName: 'job', key, mode: 'all', waitMs, max: 2 }) as const
    for (const [payload, key, waitMs] of [
      ['1', 'a', FAR_MS],
      ['2', 'b', -1000],
      ['3', 'a', FAR_MS],
      ['4', 'a', FAR_MS],
    ] as const) {
      await kit.cluster.inbox.deliver(lead, [gathering(await publish(kit, { payload }), gather(key, waitMs))])
    }
    assertEqual(await ripePayloads(kit), [['1', '3'], ['2']], 'payloads')
    assertEqual((await kit.cluster.inbox.ripe(1)).groups.length, 1, 'groups of a limit')
    await kit.reopen()
    assertEqual(await ripePayloads(kit), [['1', '3'], ['2']], 'payloads after a restart')
  },

  'what is gathered is released once, with its run': async (kit) => {
    const lead = await leadOf(kit)
    const gather = { jobName: 'job', key: '', mode: 'all', waitMs: -1000, max: 9 } as const
    for (const payload of ['1', '2']) {
      await kit.cluster.inbox.deliver(lead, [gathering(await publish(kit, { payload }), gather)])
    }
    const members = (await ripeGroups(kit))[0]?.members.map(({ id }) => id) ?? []
    const release = () => ({ members, run: newRun({ payload: '[1,2]', labels: { a: 'b' } }) })
    const [lost] = await kit.cluster.inbox.release({ ...lead, epoch: 9 }, [release()])
    assertEqual(lost, { kept: false, created: [] }, 'without the lead')
    const first = release()
    assertEqual(await kit.cluster.inbox.release(lead, [first]), [{ kept: true, created: [first.run.id] }], 'the answer')
    for (const again of [first, release()]) {
      assertEqual(await kit.cluster.inbox.release(lead, [again]), [{ kept: false, created: [] }], 'sent again')
    }
    assertEqual(
      (await kit.storage.getRuns({})).map(({ payload }) => payload),
      ['[1,2]'],
      'runs',
    )
    assertEqual(await ripeGroups(kit), [], 'groups')
    await kit.cluster.inbox.deliver(lead, [gathering(await publish(kit), gather)])
    const ids = (await ripeGroups(kit))[0]?.members.map(({ id }) => id) ?? []
    assertEqual(
      await kit.cluster.inbox.release(lead, [{ members: ids, run: null }]),
      [{ kept: true, created: [] }],
      'no run',
    )
  },

  'a release that lacks one of its members does nothing': async (kit) => {
    const lead = await leadOf(kit)
    const gather = { jobName: 'job', key: '', mode: 'all', waitMs: -1000, max: 9 } as const
    for (let n = 0; n < 6; n++) await kit.cluster.inbox.deliver(lead, [gathering(await publish(kit), gather)])
    const ids = (await ripeGroups(kit))[0]?.members.map(({ id }) => id) ?? []
    const [gone = '', first = '', last = '', ...intact] = ids
    const release = (...members: readonly string[]) => ({ members, run: newRun() })
    await kit.cluster.inbox.release(lead, [release(gone)])
    const [lacksFirst, lacksLast, whole] = [release(gone, last), release(first, gone), release(...intact)]
    assertEqual(
      await kit.cluster.inbox.release(lead, [lacksFirst, whole, lacksLast]),
      [
        { kept: false, created: [] },
        { kept: true, created: [whole.run.id] },
        { kept: false, created: [] },
      ],
      'answers',
    )
    assertEqual((await kit.storage.getRuns({})).length, 2, 'runs')
    const left = (await ripeGroups(kit))[0]?.members.map(({ id }) => id)
    assertEqual(left, [first, last], 'what waits')
    const again = release(first, last)
    assertEqual(await kit.cluster.inbox.release(lead, [again]), [{ kept: true, created: [again.run.id] }], 'later')
  },
})

function gathering(message: MessageRecord, gathered: NewGathered): Delivery {
  return { ...deliveryOf(message, []), wanted: 1, gathered: [gathered] }
}

async function ripeGroups(kit: Kit): Promise<readonly RipeGroup[]> {
  const { groups } = await kit.cluster.inbox.ripe(10)
  return [...groups].sort((a, b) => (a.key < b.key ? -1 : 1))
}

async function ripePayloads(kit: Kit): Promise<readonly (readonly (string | null)[])[]> {
  return (await ripeGroups(kit)).map(({ members }) => members.map(({ payload }) => payload))
}

/** For storages with transactions of the application. */
export const INBOX_TRANSACTION_CASES: readonly ContractCase[] = casesOf('transaction', 'inbox in a transaction', {
  'a message is there when the transaction of the caller is committed, and never when it is not': async (kit) => {
    const inbox = kit.storage.cluster?.inbox
    if (inbox === undefined) return
    const [kept, lost] = [newMessage({ dedupeKey: 'k' }), newMessage()]
    await kit.transaction.run(async (trx) => {
      const [first] = await inbox.publish([kept], trx)
      assertEqual([first?.created, first?.message.id], [true, kept.id], 'the answer')
      const [second] = await inbox.publish([newMessage({ dedupeKey: 'k' })], trx)
      assertEqual([second?.created, second?.message.id], [false, kept.id], 'of the same key')
    })
    const rolledBack = kit.transaction.run(async (trx) => {
      await inbox.publish([lost], trx)
      throw new Error('never mind')
    })
    await rolledBack.catch(() => {})
    assertEqual(await waitingIds(kit), [kept.id], 'messages')
  },
})
