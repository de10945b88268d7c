import { Kysely } from 'kysely'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { betterSqlite3 } from '../../src/better-sqlite3'
import { createTaskQueue, type TaskQueue } from '../../src/queue'

interface Mail {
  to: string
}
interface Tasks {
  mail: Mail
  resize: { width: number }
}

describe('the types of a queue', () => {
  const queue: TaskQueue<Tasks> = createTaskQueue<Tasks>({ logger: null })

  it('know the payload of each type', async () => {
    queue.register('mail', (mail) => expectTypeOf(mail).toEqualTypeOf<Mail>())
    queue.register({ taskType: 'resize', execute: ({ width }) => expectTypeOf(width).toEqualTypeOf<number>() })
    // @ts-expect-error: there is no such type
    await expect(queue.enqueue('nail', { to: '' })).rejects.toThrow('nail')
    // @ts-expect-error: not its payload
    await queue.enqueue('mail', { width: 1 })
    await queue.enqueue('mail', { to: 'mary' }, { priority: 1 })
    // @ts-expect-error: there is no such option
    await expect(queue.enqueue('mail', { to: 'mary' }, { dedupKey: 'a' })).rejects.toThrow('dedupKey')
  })

  it('refuse a handler that wants something else', () => {
    const other = createTaskQueue<Tasks>({ logger: null })
    // @ts-expect-error: a mail is no number
    other.register('mail', (n: number) => n)
    // @ts-expect-error: a mail is no number
    other.register('resize', { timeout: 1 }, (n: string) => n)
  })

  it('follow a schema from what is enqueued to what the handler gets', () => {
    const other = createTaskQueue<{ at: { when: string } }>({ logger: null })
    const schema = z.object({ when: z.string().transform((text) => text.length) })
    other.register('at', { schema }, (at) => expectTypeOf(at).toEqualTypeOf<{ when: number }>())
    const objects = createTaskQueue<{ at: { when: string } }>({ logger: null })
    objects.register({ taskType: 'at', schema, execute: (at) => expectTypeOf(at).toEqualTypeOf<{ when: number }>() })
  })

  it('refuse a schema that makes what JSON cannot keep', () => {
    const other = createTaskQueue<{ at: { when: string } }>({ logger: null })
    const schema = z.object({ when: z.string().transform((text) => new Date(text)) })
    // @ts-expect-error: a Date is not JSON
    other.register('at', { schema }, ({ when }: { when: Date }) => when)
    const another = createTaskQueue<{ at: { when: string } }>({ logger: null })
    // @ts-expect-error: a Date is not JSON
    another.register({ taskType: 'at', schema, execute: ({ when }: { when: Date }) => when })
  })

  it('let a queue without a type map have any handler', () => {
    const open = createTaskQueue({ logger: null })
    open.register('mail', (mail: Mail) => mail.to)
    open.register('unknown', (payload) => expectTypeOf(payload).toEqualTypeOf<unknown>())
    open.register('parsed', { schema: z.object({ n: z.number() }) }, ({ n }) => expectTypeOf(n).toEqualTypeOf<number>())
  })

  it('take the Kysely instance of an application, whatever its tables', async () => {
    const db = new Kysely<{ users: { id: number } }>({ dialect: betterSqlite3(':memory:') })
    const onIt = createTaskQueue<Tasks>({ db, logger: null })
    onIt.register('mail', () => {})
    expect(await onIt.enqueue('mail', { to: 'mary' })).toMatchObject({ state: 'queued' })
    await onIt.close()
    await db.destroy()
  })

  it('refuse two places at once', () => {
    const dialect = betterSqlite3(':memory:')
    // @ts-expect-error: one place is enough
    expect(() => createTaskQueue({ dialect, db: new Kysely({ dialect }) })).toThrow('not dialect and db')
  })
})
