import type { MessageQuery } from '../../port'
import { assertEqual, assertMatches, itemAt } from '../assert'
import { casesOf } from './contract-case'
import { deliveryOf, FUTURE, leadOf, messageOf, publish, waitingIds } from './messages'

export const REPLAY_CASES = casesOf('cluster', 'replay', {
  'delivered messages are delivered again when somebody asks for it': async (kit) => {
    const lead = await leadOf(kit)
    const messages = [await publish(kit), await publish(kit, { type: 'other' }), await publish(kit, { tenant: 'acme' })]
    await kit.cluster.inbox.deliver(
      lead,
      messages.map((each) => deliveryOf(each)),
    )
    const waiting = await publish(kit)
    const query = { types: ['user.created'], tenant: '', from: '2000-01-01T00:00:00.000Z', before: FUTURE }
    const replay = async (of: MessageQuery) => (await kit.cluster.inbox.replay({ query: of, limit: 10 })).replayed
    assertEqual(await replay({ ...query, before: '2000-01-01T00:00:00.000Z' }), 0, 'of another time')
    assertEqual(await replay({ ...query, isUnwanted: true }), 0, 'of those that nobody wanted')
    assertEqual(await replay(query), 1, 'messages')
    assertEqual(await waitingIds(kit), [messages[0]?.id ?? '', waiting.id], 'what waits')
    const again = await messageOf(kit, messages[0]?.id ?? '')
    assertMatches(again, { processedAt: null, wanted: 0, round: 1 }, 'the message')
    const [stale] = await kit.cluster.inbox.deliver(lead, [deliveryOf(itemAt(messages, 0, 'messages'))])
    assertEqual(stale?.kept, false, 'a delivery of the first round')
    assertEqual((await kit.cluster.inbox.deliver(lead, [deliveryOf(again)]))[0]?.kept, true, 'of the second one')
  },

  'so many messages are looked at in a batch, and each is delivered again once': async (kit) => {
    const lead = await leadOf(kit)
    const deliverAll = async (limit = 10) => {
      const { messages } = await kit.cluster.inbox.waiting(limit)
      await kit.cluster.inbox.deliver(
        lead,
        messages.map((each) => deliveryOf(each)),
      )
      return messages.map(({ id }) => id)
    }
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push((await publish(kit, { type: n === 1 ? 'other' : 'wanted' })).id)
    await deliverAll(4)
    const query = { types: ['wanted'] }
    const first = await kit.cluster.inbox.replay({ query, limit: 2 })
    assertEqual([first.replayed, first.next !== null], [1, true], 'the first batch')
    assertEqual((await deliverAll()).sort(), [ids[0], ids[4]].sort(), 'what waits after it')
    await publish(kit, { type: 'wanted' })
    await deliverAll()
    await kit.reopen()
    const again: number[] = []
    for (let next = first.next; next !== null; ) {
      const answer = await kit.cluster.inbox.replay({ query, limit: 2, cursor: next })
      again.push(answer.replayed)
      next = answer.next
    }
    assertEqual(again, [2, 1], 'the batches after it')
    const rounds = new Map((await kit.cluster.inbox.list({})).map(({ id, round }) => [id, round]))
    assertEqual(
      ids.map((id) => rounds.get(id)),
      [1, 0, 1, 1, 1],
      'rounds',
    )
    assertEqual([...rounds.values()].at(-1), 0, 'round of the one that came later')
  },

  'a replay of nothing has no next batch': async (kit) => {
    assertEqual(await kit.cluster.inbox.replay({ query: {}, limit: 1 }), { replayed: 0, next: null }, 'the answer')
  },
})
