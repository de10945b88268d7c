import { assert, assertEqual, assertMatches, assertRejects } from '../assert'
import { newRun, outcomeOf, stepWrite } from './builders'
import { casesOf } from './contract-case'

const TIMEOUT_MS = 60_000
const BROKEN = new Error('the body is broken')

const inTransaction = (name: string) => stepWrite({ name, kind: 'transaction' })

export const TRANSACTION_CASES = casesOf('transaction', 'transaction', {
  'commitWith keeps what the body wrote together with the commit': async (kit) => {
    const holder = await kit.start()
    const row = newRun()
    const { answer, value } = await kit.transaction.commitWith(async (trx) => {
      await kit.transaction.enqueue(trx, [row])
      return { commit: holder.next({ steps: [inTransaction('a')] }), value: { charged: 7 } }
    }, TIMEOUT_MS)
    assertMatches(answer, { kept: true, status: 'running' }, 'answer')
    assertEqual(value, { charged: 7 }, 'value')
    assertMatches(await kit.run(row.id), { status: 'pending' }, 'what the body wrote')
    assertEqual((await kit.storage.getSteps(holder.id)).length, 1, 'number of steps')
    assertMatches(await kit.run(holder.id), { commitNo: 1 }, 'the run')
  },

  'commitWith can end the run': async (kit) => {
    const holder = await kit.start()
    const commit = holder.next({ outcome: outcomeOf('complete') })
    const { answer } = await kit.transaction.commitWith(async () => ({ commit, value: null }), TIMEOUT_MS)
    assertMatches(answer, { kept: true, status: 'completed' }, 'answer')
    assertMatches(await kit.run(holder.id), { status: 'completed' }, 'the run')
  },

  'a lost lease takes back what the body wrote': async (kit) => {
    const holder = await kit.start()
    const { lease } = holder
    const stale = [
      holder.next({ lease: { ...lease, token: 'other' } }),
      holder.next({ lease: { ...lease, epoch: lease.epoch + 1 } }),
      { ...holder.next(), commitNo: 2 },
    ]
    const before = await kit.snapshot(holder.id)
    for (const commit of stale) {
      const row = newRun()
      const { answer } = await kit.transaction.commitWith(async (trx) => {
        await kit.transaction.enqueue(trx, [row])
        return { commit: { ...commit, steps: [inTransaction('a')] }, value: 1 }
      }, TIMEOUT_MS)
      assertEqual(answer, { kept: false }, 'answer')
      assertEqual(await kit.storage.getRun(row.id), null, 'what the body wrote')
      assertEqual(await kit.snapshot(holder.id), before, 'the run')
    }
  },

  'an error of the body takes back what it wrote and is thrown': async (kit) => {
    const holder = await kit.start()
    const row = newRun()
    const before = await kit.snapshot(holder.id)
    const failing = kit.transaction.commitWith(async (trx) => {
      await kit.transaction.enqueue(trx, [row])
      throw BROKEN
    }, TIMEOUT_MS)
    assertEqual((await assertRejects(failing, null, 'commitWith')) === BROKEN, true, 'whether it is the error thrown')
    assertEqual(await kit.storage.getRun(row.id), null, 'what the body wrote')
    assertEqual(await kit.snapshot(holder.id), before, 'the run')
    await holder.commit({ steps: [stepWrite()] })
  },

  'a commit that cannot be written takes back what the body wrote': async (kit) => {
    const holder = await kit.start()
    await holder.commit({ steps: [stepWrite({ name: 'a' })] })
    const row = newRun()
    const failing = kit.transaction.commitWith(async (trx) => {
      await kit.transaction.enqueue(trx, [row])
      return { commit: holder.next({ steps: [inTransaction('a')] }), value: 1 }
    }, TIMEOUT_MS)
    await assertRejects(failing, null, 'commitWith')
    assertEqual(await kit.storage.getRun(row.id), null, 'what the body wrote')
    await holder.commit({ steps: [stepWrite({ name: 'b' })] })
  },

  'a body that takes too long is taken back with TRANSACTION_TIMEOUT': async (kit) => {
    const holder = await kit.start()
    const row = newRun()
    const hanging = kit.transaction.commitWith(async (trx) => {
      await kit.transaction.enqueue(trx, [row])
      return new Promise<never>(() => {})
    }, 50)
    await assertRejects(hanging, 'TRANSACTION_TIMEOUT', 'commitWith')
    assertEqual(await kit.storage.getRun(row.id), null, 'what the body wrote')
    await holder.commit({ steps: [stepWrite()] })
  },

  'a transaction of the caller keeps what it enqueued': async (kit) => {
    const [one, two] = [newRun(), newRun({ idempotencyKey: 'k' })]
    const value = await kit.transaction.run(async (trx) => {
      const answers = await kit.transaction.enqueue(trx, [one, two])
      return answers.map(({ created, run }) => [created, run.id])
    })
    const expected = [
      [true, one.id],
      [true, two.id],
    ]
    assertEqual(value, expected, 'value')
    assertEqual(await kit.claimedIds(), [one.id, two.id], 'ids claimed')
  },

  'a transaction of the caller that throws leaves nothing': async (kit) => {
    const row = newRun({ idempotencyKey: 'k' })
    const failing = kit.transaction.run(async (trx) => {
      await kit.transaction.enqueue(trx, [row])
      throw BROKEN
    })
    assertEqual((await assertRejects(failing, null, 'run')) === BROKEN, true, 'whether it is the error thrown')
    assertEqual(await kit.storage.getRun(row.id), null, 'the run')
    await kit.enqueue({ idempotencyKey: 'k' })
  },

  'enqueue in a transaction knows taken keys': async (kit) => {
    const known = await kit.enqueue({ idempotencyKey: 'k', payload: '1' })
    const answers = await kit.transaction.run((trx) => kit.transaction.enqueue(trx, [newRun({ idempotencyKey: 'k' })]))
    assertEqual(answers, [{ run: known, created: false }], 'answers')
    const refused = newRun({ idempotencyKey: 'k', payload: '2', onConflict: 'reject' })
    const failing = kit.transaction.run((trx) => kit.transaction.enqueue(trx, [newRun(), refused]))
    await assertRejects(failing, 'CONFLICT', 'run')
    assertEqual((await kit.storage.counts({})).pending, 1, 'pending runs')
  },

  'calls at the same time in one transaction do not touch each other': async (kit) => {
    const taken = await kit.enqueue({ idempotencyKey: 'k', payload: '1' })
    const refused = () => newRun({ idempotencyKey: 'k', payload: '2', onConflict: 'reject' })
    const rows = [newRun(), newRun(), newRun()]
    const found = await kit.transaction.run(async (trx) => {
      const lists = rows.flatMap((row) => [[newRun(), refused()], [row]])
      const answers = await Promise.allSettled(lists.map((list) => kit.transaction.enqueue(trx, list)))
      return answers.map((answer) => (answer.status === 'fulfilled' ? 'created' : answer.reason.code))
    })
    assertEqual(found, ['CONFLICT', 'created', 'CONFLICT', 'created', 'CONFLICT', 'created'], 'answers')
    const ids = (await kit.storage.getRuns({})).map(({ id }) => id).sort()
    assertEqual(ids, [taken, ...rows].map(({ id }) => id).sort(), 'ids of all runs')
  },

  'other calls go on once the transaction is over': async (kit) => {
    const inside = kit.transaction.run(async (trx) => kit.transaction.enqueue(trx, [newRun({ jobName: 'inside' })]))
    const outside = kit.enqueue({ jobName: 'outside' })
    await Promise.all([inside, outside])
    const { pending } = await kit.storage.counts({})
    assert(pending === 2, `both runs should be there, found ${pending}`)
  },
})
