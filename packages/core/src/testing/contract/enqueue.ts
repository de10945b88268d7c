import type { ConflictError } from '../../base'
import { assert, assertEqual, assertMatches, assertRejects, itemAt } from '../assert'
import { FAR_MS, newId, newRun } from './builders'
import { casesOf } from './contract-case'
import { assertApart, assertInstant } from './instants'

const GIVEN = {
  tenant: 'acme',
  jobName: 'send-mail',
  jobVersion: '2',
  payload: '{"to":"a@b.c"}',
  labels: { customer: '42', 'a.b c': 'ü "quoted" \\' },
  idempotencyKey: 'mail-1',
  concurrencyKey: 'smtp',
  concurrencyLimit: 3,
  holdKeyWhileWaiting: true,
  priority: -7,
  timeoutMs: 90_000,
  parentRunId: '01JPARENT00000000000000000',
  scheduleId: 'daily',
  scheduledFor: '2026-01-31T09:00:00.000Z',
  traceParent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
} as const

const NEW = {
  status: 'pending',
  concurrencySlot: null,
  waitingFor: null,
  currentStepIndex: 0,
  progress: null,
  output: null,
  error: null,
  errorDetail: null,
  attempt: 1,
  attemptBase: 0,
  crashCount: 0,
  assignments: 0,
  ownerId: null,
  claimToken: null,
  leaseEpoch: 0,
  leaseUntil: null,
  leaderEpoch: null,
  commitNo: 0,
  wakes: 0,
  lastEventSequence: 0,
  cancelRequestedAt: null,
  deadlineAt: null,
  heartbeatAt: null,
  startedAt: null,
  finishedAt: null,
} as const

export const ENQUEUE_CASES = casesOf('required', 'enqueue', {
  'the answer shows the run as given and untouched': async (kit) => {
    const id = newId()
    const run = await kit.enqueue({ id, ...GIVEN })
    assertMatches(run, { id, ...GIVEN, ...NEW }, 'the new run')
    assertEqual(await kit.run(id), run, 'getRun and the answer')
  },

  'a run without a delay is available from its creation': async (kit) => {
    const run = await kit.enqueue()
    assertInstant(run.createdAt, 'createdAt')
    assertMatches(run, { availableAt: run.createdAt, updatedAt: run.createdAt }, 'instants of the new run')
  },

  'a delay counts from the creation': async (kit) => {
    const run = await kit.enqueue({ start: { afterMs: FAR_MS } })
    assertApart(run.createdAt, run.availableAt, FAR_MS)
    const early = await kit.enqueue({ start: { afterMs: -FAR_MS } })
    assertApart(early.createdAt, early.availableAt, -FAR_MS)
  },

  'an instant to start at is kept to the millisecond': async (kit) => {
    const run = await kit.enqueue({ start: { at: '2099-12-31T23:59:59.987Z' } })
    assertMatches(run, { availableAt: '2099-12-31T23:59:59.987Z' }, 'the new run')
  },

  'answers come in the order of the runs': async (kit) => {
    const runs = [newRun({ priority: 1 }), newRun({ priority: 9 }), newRun(), newRun({ tenant: 'b' })].reverse()
    const answers = await kit.storage.enqueue(runs)
    assertEqual(
      answers.map(({ run }) => run.id),
      runs.map(({ id }) => id),
      'ids of the answers',
    )
    assert(
      answers.every(({ created }) => created),
      'each of the runs should be created',
    )
  },

  'an empty list is nothing to do': async (kit) => {
    assertEqual(await kit.storage.enqueue([]), [], 'answers')
  },

  'a list of 1,000 runs is one call': async (kit) => {
    const answers = await kit.storage.enqueue(Array.from({ length: 1000 }, () => newRun()))
    assertEqual(new Set(answers.map(({ run }) => run.id)).size, 1000, 'different ids')
    assertEqual((await kit.storage.counts({})).pending, 1000, 'pending runs')
  },

  'the same run sent again is created once': async (kit) => {
    const run = newRun()
    const [first] = await kit.storage.enqueue([run])
    const [again] = await kit.storage.enqueue([run])
    assertEqual(again, { run: first?.run, created: true }, 'answer to the second call')
    assertEqual((await kit.storage.counts({})).pending, 1, 'pending runs')
  },

  'a run sent again after it was claimed is not reset': async (kit) => {
    const run = newRun({ idempotencyKey: 'once' })
    await kit.storage.enqueue([run])
    const holder = await kit.hold()
    const [again] = await kit.storage.enqueue([run])
    assertEqual(again, { run: holder.run, created: true }, 'answer to the second call')
  },

  'a list of which some were sent before creates the others': async (kit) => {
    const [old, fresh] = [newRun(), newRun()]
    await kit.storage.enqueue([old])
    const answers = await kit.storage.enqueue([fresh, old])
    assertEqual(
      answers.map(({ created, run }) => [created, run.id]),
      [
        [true, fresh.id],
        [true, old.id],
      ],
      'answers',
    )
    assertEqual((await kit.storage.counts({})).pending, 2, 'pending runs')
  },

  'payload text is kept byte for byte': async (kit) => {
    const texts = [
      '{ "a" : 1.0 , "a": 2,\n"b":[ ] }',
      '"äöü 漢字 👩‍👩‍👧 \u2028"',
      '"\\u0000"',
      '"\\ud800 \\udfff"',
      'null',
      '1e400',
      '12345678901234567890.10',
      '"\\"\\\\\'%_?$1:name{}"',
      '""',
    ]
    for (const payload of texts) {
      const { id } = await kit.enqueue({ payload })
      assertEqual((await kit.run(id)).payload, payload, 'payload')
    }
  },

  'no payload and the payload null are two things': async (kit) => {
    const [nothing, nil] = [await kit.enqueue({ payload: null }), await kit.enqueue({ payload: 'null' })]
    assertEqual([(await kit.run(nothing.id)).payload, (await kit.run(nil.id)).payload], [null, 'null'], 'payloads')
  },

  'a payload of 1 MiB is kept': async (kit) => {
    const payload = JSON.stringify('ü'.repeat(512 * 1024 - 1))
    const { id } = await kit.enqueue({ payload })
    assert((await kit.run(id)).payload === payload, 'the payload of 1 MiB should come back unchanged')
  },
})

export const IDEMPOTENCY_CASES = casesOf('required', 'idempotency', {
  'the second run with a key gets the first one': async (kit) => {
    const first = await kit.enqueue({ idempotencyKey: 'k' })
    const answers = await kit.storage.enqueue([newRun({ idempotencyKey: 'k' })])
    assertEqual(answers, [{ run: first, created: false }], 'answers')
    assertEqual((await kit.storage.counts({})).pending, 1, 'pending runs')
  },

  'a refused duplicate leaves nothing of itself': async (kit) => {
    const first = await kit.enqueue({ idempotencyKey: 'k', payload: '1', labels: { a: '1' } })
    const duplicate = newRun({ idempotencyKey: 'k', payload: '2', labels: { a: '2' }, priority: 5 })
    await kit.storage.enqueue([duplicate])
    assertEqual(await kit.run(first.id), first, 'the run that has the key')
    assertEqual(await kit.storage.getRun(duplicate.id), null, 'the duplicate')
  },

  'a key belongs to one tenant and one job': async (kit) => {
    await kit.enqueue({ idempotencyKey: 'k' })
    await kit.enqueue({ idempotencyKey: 'k', tenant: 'b' })
    await kit.enqueue({ idempotencyKey: 'k', jobName: 'other' })
    assertEqual((await kit.storage.counts({})).pending, 3, 'pending runs')
  },

  'runs without a key never collide': async (kit) => {
    await kit.storage.enqueue([newRun(), newRun(), newRun({ idempotencyKey: '' })])
    assertEqual((await kit.storage.counts({})).pending, 3, 'pending runs')
  },

  'the second of a list gets the first one of the list': async (kit) => {
    const [first, second] = [newRun({ idempotencyKey: 'k' }), newRun({ idempotencyKey: 'k' })]
    const answers = await kit.storage.enqueue([first, second])
    assertEqual(
      answers.map(({ created, run }) => [created, run.id]),
      [
        [true, first.id],
        [false, first.id],
      ],
      'answers',
    )
  },

  'of 16 callers at once exactly one creates': async (kit) => {
    const calls = Array.from({ length: 16 }, () => kit.storage.enqueue([newRun({ idempotencyKey: 'k' })]))
    const answers = (await Promise.all(calls)).map((list) => itemAt(list, 0, 'answers'))
    assertEqual(answers.filter(({ created }) => created).length, 1, 'callers that created')
    assertEqual(new Set(answers.map(({ run }) => run.id)).size, 1, 'different runs answered')
    assertEqual((await kit.storage.counts({})).pending, 1, 'pending runs')
  },

  'reject refuses a different payload with CONFLICT': async (kit) => {
    const first = await kit.enqueue({ idempotencyKey: 'k', payload: '1' })
    const other = newRun({ idempotencyKey: 'k', payload: '2', onConflict: 'reject' })
    const error = await assertRejects(kit.storage.enqueue([other]), 'CONFLICT', 'enqueue')
    assertMatches(error as ConflictError, { runId: first.id, status: 'pending' }, 'the error')
    assertEqual(await kit.run(first.id), first, 'the run that has the key')
  },

  'reject tells the status of the run that has the key': async (kit) => {
    const holder = await kit.start({ jobName: 'j', idempotencyKey: 'k', payload: '1' })
    const refused = async () => {
      const other = newRun({ jobName: 'j', idempotencyKey: 'k', payload: '2', onConflict: 'reject' })
      const error = (await assertRejects(
        kit.storage.enqueue([newRun(), other]),
        'CONFLICT',
        'enqueue',
      )) as ConflictError
      return { runId: error.runId, status: error.status }
    }
    assertEqual(await refused(), { runId: holder.id, status: 'running' }, 'the error while the run is running')
    await holder.leave('complete')
    assertEqual(await refused(), { runId: holder.id, status: 'completed' }, 'the error after its end')
  },

  'reject takes the same payload': async (kit) => {
    const first = await kit.enqueue({ idempotencyKey: 'k', payload: null })
    const same = newRun({ idempotencyKey: 'k', payload: null, onConflict: 'reject' })
    assertEqual(await kit.storage.enqueue([same]), [{ run: first, created: false }], 'answers')
  },

  'reject refuses its whole list': async (kit) => {
    await kit.enqueue({ idempotencyKey: 'k', payload: '1' })
    const list = [newRun(), newRun({ idempotencyKey: 'k', payload: '2', onConflict: 'reject' }), newRun()]
    await assertRejects(kit.storage.enqueue(list), 'CONFLICT', 'enqueue')
    assertEqual((await kit.storage.counts({})).pending, 1, 'pending runs')
  },

  'reject refuses a list that disagrees with itself': async (kit) => {
    const one = { idempotencyKey: 'k', onConflict: 'reject' } as const
    const list = [newRun({ ...one, payload: '1' }), newRun({ ...one, payload: '2' })]
    const error = await assertRejects(kit.storage.enqueue(list), 'CONFLICT', 'enqueue')
    assertMatches(error as ConflictError, { runId: itemAt(list, 0, 'runs').id, status: null }, 'the error')
    assertEqual((await kit.storage.counts({})).pending, 0, 'pending runs')
  },

  'an ended run keeps its key until it is removed': async (kit) => {
    const holder = await kit.start({ jobName: 'j', idempotencyKey: 'k' })
    const ended = await holder.leave('complete')
    const again = () => kit.storage.enqueue([newRun({ jobName: 'j', idempotencyKey: 'k' })])
    assertEqual(await again(), [{ run: ended, created: false }], 'answers while the run is there')
    await kit.order('remove', holder.id)
    assertEqual((await again()).length === 1 && (await kit.storage.counts({})).pending, 1, 'pending runs after removal')
  },
})
