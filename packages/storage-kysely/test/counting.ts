import type { CompiledQuery, Dialect } from 'kysely'
import type { DialectHooks, DurablyDialect } from '../src'

export interface Counted {
  readonly dialect: DurablyDialect
  /** The statements of each message sent so far. */
  readonly messages: (readonly CompiledQuery[])[]
  /** What the answer to each message took so far, of those that are not answered within the call. */
  readonly times: number[]
  /** Called before the next message is sent, once. */
  beforeNext(act: () => Promise<void>): void
  /** Called before each message from now on. */
  beforeEach(note: () => void): void
}

/** A dialect with hooks whose messages are counted, and that can be held up for a moment. */
export function counting(inner: DurablyDialect): Counted {
  const messages: (readonly CompiledQuery[])[] = []
  const times: number[] = []
  const pending: (() => Promise<void>)[] = []
  let beforeEach = () => {}
  const { batchNow } = inner.durablyHooks
  const hooks: DialectHooks = {
    ...inner.durablyHooks,
    ...(batchNow !== undefined && {
      batchNow(queries) {
        // What is held up takes its time.
        if (pending.length > 0) return null
        beforeEach()
        messages.push(queries)
        return batchNow(queries)
      },
    }),
    async batch(queries, waitMs, sender) {
      beforeEach()
      messages.push(queries)
      await pending.shift()?.()
      const begin = performance.now()
      const results = await inner.durablyHooks.batch?.(queries, waitMs, sender)
      times.push(performance.now() - begin)
      if (results === undefined) throw new Error('This dialect has no batch hook to count.')
      return results
    },
  }
  const dialect: Dialect & { durablyHooks: DialectHooks } = {
    durablyHooks: hooks,
    createAdapter: () => inner.createAdapter(),
    createDriver: () => inner.createDriver(),
    createIntrospector: (db) => inner.createIntrospector(db),
    createQueryCompiler: () => inner.createQueryCompiler(),
  }
  return {
    ...{ dialect, messages, times },
    beforeNext: (act) => pending.push(act),
    beforeEach(note) {
      beforeEach = note
    },
  }
}
