import { assert, assertEqual, assertMatches, assertRejects, itemAt } from '../assert'
import { DETAIL, FAR_MS, newId, outcomeOf, stepWrite, waitingStep } from './builders'
import { casesOf } from './contract-case'
import { assertApart, assertInstant } from './instants'

export const STEP_CASES = casesOf('required', 'steps', {
  'a row shows what was written': async (kit) => {
    const holder = await kit.start()
    const row = {
      id: newId(),
      name: 'charge "card"',
      index: 4,
      kind: 'transaction',
      attempt: 2,
      output: '{"n":1}',
    } as const
    await holder.commit({ steps: [stepWrite({ ...row, checkpoint: '[1]', durationMs: 50_000 })] })
    const step = itemAt(await kit.storage.getSteps(holder.id), 0, 'steps')
    assertMatches(step, { ...row, checkpoint: '[1]', runId: holder.id, status: 'completed', leaseEpoch: 1 }, 'the row')
    assertMatches(step, { error: null, errorDetail: null, waitName: null, dueAt: null, isDue: false }, 'the row')
    assertApart(step.startedAt, step.completedAt, 50_000)
  },

  'a failed row shows its error': async (kit) => {
    const holder = await kit.start()
    // Of what comes with an error of durably's own nothing may get lost: a job would catch another error then.
    const own = { kind: 'RunFailedError', fields: { run: { payload: ['NUL \0', 'half \ud800', 1.5, null, {}] } } }
    const error = {
      error: 'It\'s "broken" \n ü \\',
      errorDetail: { ...DETAIL, issues: [{ path: 'a.b', message: 'no' }], own, permanent: true },
    } as const
    await holder.commit({ steps: [stepWrite({ status: 'failed', output: null, ...error })] })
    const step = itemAt(await kit.storage.getSteps(holder.id), 0, 'steps')
    assertMatches(step, { status: 'failed', output: null, ...error }, 'the row')
    assertInstant(step.completedAt, 'completedAt')
  },

  'a row that goes on has no end': async (kit) => {
    const holder = await kit.start()
    const started = stepWrite({ status: 'started', output: null, checkpoint: '{"page":3}', index: 0 })
    const waiting = waitingStep({ kind: 'signal', waitName: 'approved', index: 1 })
    await holder.commit({ steps: [started, waiting] })
    const [first, second] = await kit.storage.getSteps(holder.id)
    assertMatches(first ?? null, { status: 'started', checkpoint: '{"page":3}', completedAt: null }, 'the started row')
    const wait = { status: 'waiting', waitName: 'approved', kind: 'signal', completedAt: null, isDue: false } as const
    assertMatches(second ?? null, wait, 'the waiting row')
  },

  'a row is written over by its id': async (kit) => {
    const holder = await kit.start()
    const id = newId()
    await holder.commit({ steps: [stepWrite({ id, name: 'a', status: 'started', output: null, checkpoint: '1' })] })
    await holder.commit({ steps: [stepWrite({ id, name: 'a', attempt: 2, output: '2' })] })
    const steps = await kit.storage.getSteps(holder.id)
    assertEqual(steps.length, 1, 'number of rows')
    const expected = { id, status: 'completed', attempt: 2, output: '2', checkpoint: null } as const
    assertMatches(itemAt(steps, 0, 'steps'), expected, 'the row')
  },

  'a row that failed keeps its checkpoint for the next attempt': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    const row = stepWrite({ status: 'started', output: null, checkpoint: '[1]' })
    await holder.commit({ steps: [row] })
    const failed = { ...row, status: 'failed', error: 'refused' } as const
    await holder.leave('fail', {}, { steps: [failed] })
    await kit.storage.command({ kind: 'retry', runId: holder.id, events: [] })
    await kit.hold()
    const step = itemAt(await kit.storage.getSteps(holder.id), 0, 'steps')
    assertMatches(step, { id: row.id, status: 'failed', checkpoint: '[1]' }, 'the row')
  },

  'a row of an earlier lease is written over by a later one': async (kit) => {
    const first = await kit.start({ jobName: 'job' })
    const id = newId()
    await first.leave('suspend', {}, { steps: [waitingStep({ id, name: 'nap', due: { inMs: -1 } })] })
    const second = await kit.hold()
    await second.commit({ steps: [stepWrite({ id, name: 'nap', kind: 'sleep', output: null })] })
    const step = itemAt(await kit.storage.getSteps(first.id), 0, 'steps')
    assertMatches(step, { status: 'completed', leaseEpoch: 2 }, 'the row')
  },

  'rows come in the order of their index': async (kit) => {
    const holder = await kit.start()
    await holder.commit({ steps: [2, 10, 0].map((index) => stepWrite({ index })) })
    await holder.commit({ steps: [stepWrite({ index: 1 })] })
    const steps = await kit.storage.getSteps(holder.id)
    assertEqual(
      steps.map(({ index }) => index),
      [0, 1, 2, 10],
      'indexes',
    )
  },

  'rows of one index come in the order of writing': async (kit) => {
    const holder = await kit.start()
    const failed = (name: string) => stepWrite({ name, status: 'failed', error: 'no', output: null })
    await holder.commit({ steps: [failed('z')] })
    await holder.commit({ steps: [failed('y'), failed('x')] })
    const steps = await kit.storage.getSteps(holder.id)
    assertEqual(
      steps.map(({ name }) => name),
      ['z', 'y', 'x'],
      'names',
    )
  },

  'failed rows of a name stay beside the one that completed': async (kit) => {
    const holder = await kit.start()
    for (const attempt of [1, 2]) {
      await holder.commit({ steps: [stepWrite({ name: 'a', status: 'failed', error: 'no', attempt, output: null })] })
    }
    await holder.commit({ steps: [stepWrite({ name: 'a', attempt: 3 })] })
    const steps = await kit.storage.getSteps(holder.id)
    assertEqual(steps.map(({ status }) => status).sort(), ['completed', 'failed', 'failed'], 'status of the rows')
  },

  'a second row of a name that is not failed is refused as a whole': async (kit) => {
    for (const status of ['completed', 'started', 'waiting'] as const) {
      const holder = await kit.start()
      await holder.commit({ steps: [stepWrite({ name: 'a', status })] })
      const before = await kit.snapshot(holder.id)
      const steps = [stepWrite({ name: 'b' }), stepWrite({ name: 'a' })]
      const commit = holder.next({ steps, progress: { current: 9 }, outcome: outcomeOf('complete') })
      await assertRejects(holder.send(commit), null, `commit beside a ${status} row`)
      assertEqual(await kit.snapshot(holder.id), before, `the run beside a ${status} row`)
    }
  },

  'a name is free again once its row has failed, at once and later': async (kit) => {
    const holder = await kit.start()
    const started = () => stepWrite({ name: 'a', status: 'started', output: null })
    const failed = (id: string) => stepWrite({ id, name: 'a', status: 'failed', error: 'no', output: null })
    const [first, second] = [started(), started()]
    await holder.commit({ steps: [first] })
    await holder.commit({ steps: [failed(first.id), second] })
    await holder.commit({ steps: [failed(second.id)] })
    await holder.commit({ steps: [started()] })
    assertEqual((await kit.storage.getSteps(holder.id)).length, 3, 'number of rows')
  },

  'the same name in two runs is no matter': async (kit) => {
    for (const holder of [await kit.start(), await kit.start()]) {
      await holder.commit({ steps: [stepWrite({ name: 'a' })] })
      assertEqual((await kit.storage.getSteps(holder.id)).length, 1, 'number of rows')
    }
  },

  'a wait is due after its time, by the clock of the storage': async (kit) => {
    const holder = await kit.start()
    const dues = [
      { inMs: FAR_MS },
      { inMs: -FAR_MS },
      { at: '2001-01-01T00:00:00.000Z' },
      { at: '2099-01-01T00:00:00.000Z' },
    ]
    await holder.commit({ steps: dues.map((due, index) => waitingStep({ due, index })) })
    const steps = await kit.storage.getSteps(holder.id)
    assertEqual(
      steps.map(({ isDue }) => isDue),
      [false, true, true, false],
      'isDue',
    )
    assertApart(steps[0]?.startedAt ?? null, steps[0]?.dueAt ?? null, FAR_MS)
    assertMatches(steps[3] ?? null, { dueAt: '2099-01-01T00:00:00.000Z' }, 'the row with an instant')
  },

  'the due instant of a wait is written once': async (kit) => {
    const holder = await kit.start()
    const id = newId()
    await holder.commit({ steps: [waitingStep({ id, name: 'nap', due: { inMs: FAR_MS } })] })
    const before = itemAt(await kit.storage.getSteps(holder.id), 0, 'steps')
    await holder.commit({ steps: [waitingStep({ id, name: 'nap', due: { inMs: 2 * FAR_MS } })] })
    await holder.commit({ steps: [waitingStep({ id, name: 'nap', due: null })] })
    const after = itemAt(await kit.storage.getSteps(holder.id), 0, 'steps')
    assertInstant(before.dueAt, 'dueAt')
    assertMatches(after, { dueAt: before.dueAt }, 'the row written over')
  },

  'texts are kept byte for byte': async (kit) => {
    const holder = await kit.start()
    const output = '{ "a":"\\u0000 \\ud800",\n"b" : 1.50 }'
    const checkpoint = JSON.stringify('漢字 👩‍👩‍👧 \u2028'.repeat(1000))
    await holder.commit({ steps: [stepWrite({ output, checkpoint })] })
    assertMatches(itemAt(await kit.storage.getSteps(holder.id), 0, 'steps'), { output, checkpoint }, 'the row')
  },

  'no output and the output null are two things': async (kit) => {
    const holder = await kit.start()
    await holder.commit({ steps: [stepWrite({ output: null, index: 0 }), stepWrite({ output: 'null', index: 1 })] })
    const steps = await kit.storage.getSteps(holder.id)
    assertEqual(
      steps.map(({ output }) => output),
      [null, 'null'],
      'outputs',
    )
  },

  'an output of 1 MiB is kept': async (kit) => {
    const holder = await kit.start()
    const output = JSON.stringify('x'.repeat(1024 * 1024 - 2))
    await holder.commit({ steps: [stepWrite({ output })] })
    assert((await kit.storage.getSteps(holder.id))[0]?.output === output, 'the output should come back unchanged')
  },

  'a run has 5,000 steps': async (kit) => {
    const holder = await kit.start()
    for (let start = 0; start < 5000; start += 500) {
      await holder.commit({ steps: Array.from({ length: 500 }, (_, offset) => stepWrite({ index: start + offset })) })
    }
    const steps = await kit.storage.getSteps(holder.id)
    assertEqual(steps.length, 5000, 'number of rows')
    assert(
      steps.every(({ index }, place) => index === place),
      'the rows should be in the order of their index',
    )
  },
})
