import type { EndingEvents, Hint } from '../../port'
import { assertEqual, assertMatches } from '../assert'
import { newId } from './builders'
import { casesOf } from './contract-case'
import { leadOf } from './leads'
import { create, firingOf, NOTHING_DONE, runOf } from './schedules'
import { assertHinted } from './watch'

const EARLIER = '2026-01-31T08:00:00.000Z'
const ENDING: EndingEvents = {
  cancelled: [{ type: 'run:cancel', payload: '"at once"' }],
  requested: [{ type: 'run:cancel', payload: '"soon"' }],
}

export const MAKING_WAY_CASES = casesOf('cluster', 'schedules', {
  'runs that make way end in the write of the firing': async (kit) => {
    const [schedule, other] = [await create(kit, { overlap: 'cancel' }), await create(kit)]
    const [waits, ofAnother] = [runOf(schedule, EARLIER), runOf(other, EARLIER)]
    await kit.storage.enqueue([waits, ofAnother])
    const runs = await kit.start({ scheduleId: schedule.id })
    const over = await kit.start({ scheduleId: schedule.id })
    await over.leave('complete')
    const ends = [waits.id, ofAnother.id, runs.id, over.id, newId()]
    const firing = firingOf(schedule, { ends })
    const lead = await leadOf(kit)
    const [answer] = await kit.cluster.schedules.fire(lead, [firing, firingOf(other)], ENDING)
    assertMatches(answer ?? null, { kept: true, created: firing.runs.map(({ id }) => id) }, 'the answer')
    const ended = answer?.ended ?? []
    assertEqual(ended.map(({ id }) => id).sort(), [waits.id, runs.id].sort(), 'runs that made way')
    for (const run of ended) assertEqual(run, await kit.run(run.id), 'a run that made way')
    assertMatches(await kit.run(waits.id), { status: 'cancelled', lastEventSequence: 1 }, 'who waited')
    const asked = await kit.run(runs.id)
    assertEqual([asked.status, asked.cancelRequestedAt !== null], ['running', true], 'who runs')
    for (const [{ id }, payload] of [
      [waits, '"at once"'],
      [runs, '"soon"'],
    ] as const) {
      // biome-ignore format: short
      const told = await kit.storage.events?.getEvents(id, {})
      assertEqual(told?.map((event) => event.payload) ?? [payload], [payload], 'stored events')
    }
    assertMatches(await kit.run(ofAnother.id), { status: 'pending' }, "another schedule's")
    assertMatches(await kit.run(over.id), { status: 'completed' }, 'who had ended')
    await kit.cluster.schedules.fire(lead, [{ ...firing, ends: [ofAnother.id] }], ENDING)
    assertMatches(await kit.run(ofAnother.id), { status: 'pending' }, 'after the firing was sent again')
  },

  'a firing that has a running run end is a hint of a cancel, where there are hints': async (kit) => {
    const schedule = await create(kit, { overlap: 'cancel' })
    const holder = await kit.start({ scheduleId: schedule.id })
    const hints: Hint[] = []
    const stop = kit.storage.watch?.subscribe((hint) => hints.push(hint))
    await kit.cluster.schedules.fire(await leadOf(kit), [firingOf(schedule, { ends: [holder.id] })], ENDING)
    const wanted = { hint: { kind: 'cancel', runId: holder.id }, after: 'fire' } as const
    if (stop !== undefined) await assertHinted(kit, hints, wanted)
    stop?.()
  },

  'a firing that is refused has no run end': async (kit) => {
    const schedule = await create(kit, { overlap: 'cancel' })
    const [waits] = await kit.storage.enqueue([runOf(schedule, EARLIER)])
    const runs = await kit.start({ scheduleId: schedule.id })
    const ends = [waits?.run.id ?? '', runs.id]
    const lost = await leadOf(kit, 'w-1', -1000)
    const lead = await leadOf(kit, 'w-2')
    const refused = [
      await kit.cluster.schedules.fire(lost, [firingOf(schedule, { ends })], ENDING),
      await kit.cluster.schedules.fire(lead, [firingOf(schedule, { ends, version: 7 })], ENDING),
    ]
    assertEqual(refused.flat(), [NOTHING_DONE, NOTHING_DONE], 'the answers')
    assertMatches(await kit.run(ends[0] ?? ''), { status: 'pending', lastEventSequence: 0 }, 'who waits')
    assertMatches(await kit.run(runs.id), { status: 'running', cancelRequestedAt: null }, 'who runs')
  },
})
