import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { EventStream, SqlDurably, StoredEvent } from '../src/index'
import { withLogPersistence } from '../src/plugins'
import { DATABASES } from './databases'
import { newFile, openMigrated } from './instances'

const nothing = z.unknown()

/** A worker, and another instance on the same file that runs nothing. */
async function twoInstances({ dialect }: (typeof DATABASES)[number]) {
  const file = newFile()
  const worker = (await openMigrated(dialect(file))).use(withLogPersistence())
  const watcher = await openMigrated(dialect(file), { pollingInterval: 50 })
  return { worker, watcher }
}

/** A job of so many steps that goes on when it is told to. */
function steps(durably: SqlDurably, count: number) {
  return durably.defineJob({ name: 'steps', input: nothing }, async (ctx) => {
    await ctx.waitFor('go')
    for (let n = 0; n < count; n++) await ctx.run(`step ${n}`, () => ({ n, text: 'ü\u0000' }))
    return count
  })
}

async function all(stream: EventStream): Promise<StoredEvent[]> {
  const events: StoredEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

describe.each(DATABASES)('subscribe() on $name', (database) => {
  it('shows what the other instance does, from the trigger to the end', async () => {
    const { worker, watcher } = await twoInstances(database)
    const { id } = await steps(worker, 150).trigger({ in: 1 })
    const seen = all(watcher.subscribe(id))
    const late = all(watcher.subscribe(id, { after: 40 }))
    const own = all(worker.subscribe(id))
    worker.start()
    await watcher.signal(id, 'go')
    const events = await seen
    expect(events).toEqual(await watcher.getEvents(id))
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(events.length).toBeGreaterThan(300)
    expect(events[0]).toMatchObject({ type: 'run:trigger', jobName: 'steps', payload: { in: 1 } })
    expect(events.at(-1)).toMatchObject({ type: 'run:complete', output: 150 })
    expect(await own).toEqual(events)
    expect(await late).toEqual(events.slice(40))
    expect(await all(watcher.subscribe(id))).toEqual(events)
  })

  it('can be cut and taken up anywhere, on either instance', async () => {
    const { worker, watcher } = await twoInstances(database)
    const { id } = await steps(worker, 100).trigger(null)
    worker.start()
    await watcher.signal(id, 'go')
    const pieces: StoredEvent[] = []
    for (let cut = 1; pieces.at(-1)?.type !== 'run:complete'; cut = (cut * 7) % 31) {
      const instance = cut % 2 === 0 ? worker : watcher
      let left = cut
      for await (const event of instance.subscribe(id, { after: pieces.at(-1)?.seq ?? 0 })) {
        pieces.push(event)
        left -= 1
        if (left === 0) break
      }
    }
    expect(pieces).toEqual(await worker.getEvents(id))
  })

  it('stays in its tenant, and ends with a run that is removed', async () => {
    const { worker, watcher } = await twoInstances(database)
    const job = steps(worker, 1)
    const { id } = await job.trigger(null, { tenant: 'acme' })
    const foreign = all(watcher.scoped({ tenant: '' }).subscribe(id))
    await expect(foreign).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const reader = watcher.scoped({ tenant: 'acme' }).subscribe(id).getReader()
    expect(await reader.read()).toMatchObject({ done: false, value: { type: 'run:trigger', seq: 1 } })
    await worker.cancel(id)
    await worker.purge()
    expect(await reader.read()).toEqual({ done: true, value: undefined })
  })

  it('goes on when the tables come back, and gives up when the instance closes', async () => {
    const { worker, watcher } = await twoInstances(database)
    const { id } = await steps(worker, 1).trigger(null)
    const reader = watcher.subscribe(id).getReader()
    expect(await reader.read()).toMatchObject({ value: { seq: 1 } })
    const troubled = new Promise((resolve) => watcher.on('worker:error', ({ during }) => resolve(during)))
    await worker.db.schema.alterTable('durably_run_events').renameTo('away').execute()
    const next = reader.read()
    expect(await troubled).toBe('read events')
    await worker.db.schema.alterTable('away').renameTo('durably_run_events').execute()
    await worker.cancel(id)
    expect(await next).toMatchObject({ value: { type: 'run:cancel', seq: 2 } })
    expect(await reader.read()).toMatchObject({ done: true })
    const other = await worker.scoped({ tenant: '' }).trigger({ name: 'steps' }, null)
    const givenUp = expect(all(watcher.subscribe(other.id))).rejects.toMatchObject({ code: 'CLOSED' })
    await watcher.close()
    await givenUp
  })
})
