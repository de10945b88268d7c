import { createDurably, defineJob } from '@coji/durably-core'
import { expect, it } from 'vitest'
import { createInbox, createScheduler, type Scheduler } from '../../cluster/src/index'
import { sqlocal } from '../src/drivers/sqlocal'
import { createKyselyStorage } from '../src/kysely-storage'
import { removeFile } from './contract-setup'

const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const

/** As soon as the page is quick enough for: what has passed when it is stored is refused. */
async function createSoon(schedules: Scheduler): Promise<void> {
  for (let ms = 100, isStored = false; !isStored; ms *= 2) {
    const creating = schedules.create('reminder', { job: 'work', payload: 'instant', at: new Date(Date.now() + ms) })
    isStored = await creating.then(
      () => true,
      (error: Error) => {
        if (!error.message.includes('its time is over')) throw error
        return false
      },
    )
  }
}

it('a tab fires schedules and delivers messages, each once however often it is loaded', async ({ onTestFinished }) => {
  const file = `schedules-${crypto.randomUUID()}.sqlite3`
  onTestFinished(() => removeFile(file))
  const ran: unknown[] = []
  const load = async () => {
    const durably = createDurably({ storage: createKyselyStorage({ dialect: sqlocal(file) }), logger: null })
    const work = defineJob({ name: 'work', input: anything, on: 'x' }, (_ctx, what) => void ran.push(what))
    durably.register({ work })
    const [schedules, inbox] = [createScheduler(durably), createInbox(durably)]
    schedules.define('yearly', { job: 'work', payload: 'year', cron: '0 0 1 1 *' })
    await durably.migrate()
    return { durably, schedules, inbox }
  }

  const first = await load()
  await first.schedules.tick()
  await createSoon(first.schedules)
  const { deduplicated } = await first.durably.publish({ type: 'x', payload: 'message', dedupeKey: 'k' })
  expect(deduplicated).toBe(false)
  await first.durably.close()

  for (let loads = 0; loads < 2; loads++) {
    const { durably, schedules, inbox } = await load()
    expect((await durably.publish({ type: 'x', payload: 'message', dedupeKey: 'k' })).deduplicated).toBe(true)
    const firedCount = async () => {
      await schedules.tick()
      return (await schedules.get('reminder'))?.firedCount
    }
    await expect.poll(firedCount).toBe(1)
    await inbox.drain()
    await durably.runUntilIdle()
    expect(await schedules.list()).toHaveLength(2)
    await durably.close()
  }
  expect(ran.sort()).toEqual(['instant', 'message'])
})
