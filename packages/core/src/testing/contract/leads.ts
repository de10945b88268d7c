import type { Lead } from '../../port'
import { assert, assertEqual, assertMatches } from '../assert'
import { FAR_MS } from './builders'
import { casesOf } from './contract-case'
import { assertInstant } from './instants'
import type { Kit } from './kit'

export async function leadOf(kit: Kit, workerId = 'w-1', ttlMs = FAR_MS): Promise<Lead> {
  const lead = await kit.cluster.lead({ name: 'schedules', workerId, ttlMs })
  assert(lead !== null, 'lead: should be free')
  return lead
}

export const LEAD_CASES = casesOf('cluster', 'lead', {
  'one has it, and keeps it': async (kit) => {
    const lead = await leadOf(kit)
    assertEqual(lead, { name: 'schedules', workerId: 'w-1', epoch: 1 }, 'the lead')
    assertEqual(await leadOf(kit), lead, 'the same lead again')
    assertEqual(await kit.cluster.lead({ name: 'schedules', workerId: 'w-2', ttlMs: FAR_MS }), null, "another's")
    assertEqual(
      (await kit.cluster.lead({ name: 'other', workerId: 'w-2', ttlMs: FAR_MS }))?.epoch,
      1,
      'of another name',
    )
  },

  'one whose time is over goes to who asks first, with a new epoch': async (kit) => {
    await leadOf(kit, 'w-1', -1000)
    assertEqual((await leadOf(kit, 'w-2', -1000)).epoch, 2, 'epoch of the next')
    assertEqual((await leadOf(kit, 'w-2')).epoch, 3, 'epoch of who asks again too late')
  },

  'one that was given up is free, and its epoch goes on': async (kit) => {
    const lead = await leadOf(kit)
    await kit.cluster.resign({ ...lead, epoch: 7 })
    assertEqual(await kit.cluster.lead({ name: 'schedules', workerId: 'w-2', ttlMs: FAR_MS }), null, 'a wrong epoch')
    await kit.cluster.resign(lead)
    assertEqual((await leadOf(kit, 'w-2')).epoch, 2, 'epoch of the next')
    await kit.reopen()
    assertEqual(await leadOf(kit, 'w-2'), { name: 'schedules', workerId: 'w-2', epoch: 2 }, 'after a restart')
  },

  'everybody sees who has it, or had it last': async (kit) => {
    assertEqual(await kit.cluster.getLead('schedules'), null, 'nobody')
    const lead = await leadOf(kit)
    const seen = await kit.cluster.getLead('schedules')
    assertMatches(seen, { ...lead, isOver: false }, 'the leader')
    assertInstant(seen?.until ?? '', 'until when')
    await kit.cluster.resign(lead)
    assertMatches(await kit.cluster.getLead('schedules'), { ...lead, isOver: true }, 'who led')
  },

  'of 16 who ask at once one gets it': async (kit) => {
    const asked = Array.from({ length: 16 }, (_, index) =>
      kit.cluster.lead({ name: 'schedules', workerId: `w-${index}`, ttlMs: FAR_MS }),
    )
    assertEqual((await Promise.all(asked)).filter((lead) => lead !== null).length, 1, 'leaders')
  },
})
