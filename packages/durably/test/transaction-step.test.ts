import { sql, type Transaction } from 'kysely'
import { afterEach, describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { withLogPersistence } from '@coji/durably-plugins'
import {
  createDurably,
  createKyselyStorage,
  createMemoryStorage,
  defineJob,
  type Durably,
  type DurablyDatabase,
  type DurablyOptions,
  type JobContext,
  type KyselyStorage,
  StorageError,
} from '../src/index'
import type { TransactionStorage } from '../src/storage'
import { paced } from '../../../test/pace'
import { BETTER_SQLITE3, DATABASES, FILES, LIBSQL } from './databases'
import { newFile, openMigrated } from './instances'

type Trx = Transaction<DurablyDatabase>
type CommitWith = TransactionStorage<Trx>['commitWith']

const opened: Durably[] = []

afterEach(async () => {
  for (const durably of opened.splice(0)) await durably.close()
})

/** A shop on a storage whose transactions a test may disturb. */
async function openShop(disturb: (commitWith: CommitWith) => CommitWith = (real) => real, dialect = LIBSQL.dialect) {
  const storage = createKyselyStorage({ dialect: dialect(newFile()), durability: 'fast' })
  await storage.migrate()
  await sql`create table charges (id integer primary key, run text)`.execute(storage.db)
  const transaction = { ...storage.transaction, commitWith: disturb(storage.transaction.commitWith) }
  return { ...openOn({ ...storage, transaction }), storage }
}

function openOn(storage: KyselyStorage, options: Partial<DurablyOptions> = {}) {
  const durably = createDurably({ logger: null, pollingInterval: 20, ...options, storage })
  opened.push(durably)
  const charges = async () =>
    (await sql<{ id: number }>`select id from charges order by id`.execute(storage.db)).rows.map(({ id }) => id)
  const perform = async (execute: (ctx: JobContext) => unknown) => {
    const job = durably.defineJob({ name: 'job', input: z.object({}) }, execute)
    const { id } = await job.trigger({})
    await durably.runUntilIdle()
    return { id, run: await job.getRun(id), steps: await durably.getSteps(id) }
  }
  return { durably, charges, perform }
}

const charge = (trx: Trx, id = 1) => sql`insert into charges (id) values (${id})`.execute(trx)

const cut = () => new StorageError('STORAGE_UNAVAILABLE', 'The connection was cut.')

/** The first call is another one. */
const firstTime =
  (first: (real: CommitWith, ...args: Parameters<CommitWith>) => ReturnType<CommitWith>) =>
  (real: CommitWith): CommitWith => {
    let calls = 0
    const disturbed = (...args: Parameters<CommitWith>) => {
      calls += 1
      return calls === 1 ? first(real, ...args) : real(...args)
    }
    return disturbed as CommitWith
  }

describe.each(DATABASES)('ctx.transaction on $name', ({ dialect }) => {
  it('keeps rows of the application together with the result of the step', async () => {
    const { perform, charges, durably } = await openShop(undefined, dialect)
    const events: unknown[] = []
    durably.on('step:complete', ({ stepName, output }) => events.push([stepName, output]))
    const { run, steps } = await perform((ctx) =>
      ctx.transaction('charge', async (trx: Trx, { attempt, idempotencyKey }) => {
        await charge(trx)
        return { attempt, hasKey: idempotencyKey === `${ctx.runId}/charge`, at: undefined }
      }),
    )
    expect(run).toMatchObject({ status: 'completed', output: { attempt: 1, hasKey: true } })
    expect(await charges()).toEqual([1])
    expect(steps).toMatchObject([{ name: 'charge', kind: 'transaction', status: 'completed' }])
    expect(events).toEqual([['charge', { attempt: 1, hasKey: true }]])
  })

  it('keeps neither when the body throws, and fails like any step', async () => {
    const { perform, charges } = await openShop(undefined, dialect)
    const { run, steps } = await perform(async (ctx) => {
      await ctx.transaction('charge', async (trx: Trx) => {
        await charge(trx)
        throw new Error('no money')
      })
    })
    expect(run).toMatchObject({ status: 'failed', error: 'no money' })
    expect(await charges()).toEqual([])
    expect(steps).toMatchObject([{ name: 'charge', kind: 'transaction', status: 'failed' }])
  })

  it('goes on after a statement that the database refused', async () => {
    const { perform, charges } = await openShop(undefined, dialect)
    const { run } = await perform(async (ctx) => {
      await ctx.transaction('one', (trx: Trx) => charge(trx).then(() => {}))
      const refused = await ctx.transaction('two', (trx: Trx) => charge(trx).then(() => {})).catch(() => 'refused')
      await ctx.transaction('three', (trx: Trx) => charge(trx, 3).then(() => {}))
      return refused
    })
    expect(run).toMatchObject({ status: 'completed', output: 'refused' })
    expect(await charges()).toEqual([1, 3])
  })

  it.each(['before it', 'in its body'])('is not blamed for a log line that the database refuses %s', async (when) => {
    const { perform, charges, durably, storage } = await openShop(undefined, dialect)
    durably.use(withLogPersistence())
    await sql`create unique index no_line_twice on durably_logs (message)`.execute(storage.db)
    let bodies = 0
    const { id, run, steps } = await perform(async (ctx) => {
      ctx.log.info('line')
      if (when === 'before it') ctx.log.info('line')
      ctx.progress(1, 2)
      await ctx.transaction('charge', async (trx: Trx) => {
        bodies += 1
        await charge(trx)
        if (when === 'in its body') ctx.log.info('line')
      })
      return 'paid'
    })
    expect(run).toMatchObject({ status: 'completed', output: 'paid', progress: { current: 1, total: 2 } })
    expect(steps).toMatchObject([{ name: 'charge', status: 'completed', attempt: 1 }])
    expect(await charges()).toEqual([1])
    expect(bodies).toBe(2)
    expect((await durably.getLogs(id)).map(({ message }) => message)).toEqual(['line'])
  })

  it('fails once when the database refuses its own result, and what else goes with it is stored', async () => {
    const { perform, charges, durably, storage } = await openShop(undefined, dialect)
    durably.use(withLogPersistence())
    await sql`create unique index one_of_a_kind on durably_steps (run_id, kind, status)`.execute(storage.db)
    const { run, id, steps } = await perform(async (ctx) => {
      await ctx.transaction('first', (trx: Trx) => charge(trx, 1).then(() => null))
      ctx.log.info('line')
      await ctx.transaction('second', (trx: Trx) => charge(trx, 2).then(() => null))
    })
    expect(run).toMatchObject({ status: 'failed', error: expect.stringMatching(/unique/i), attempt: 1 })
    expect(steps).toMatchObject([{ status: 'completed' }, { name: 'second', status: 'failed' }])
    expect(await charges()).toEqual([1])
    expect((await durably.getLogs(id)).map(({ message }) => message)).toEqual(['line'])
  })

  it('creates a run of its own with its rows', async () => {
    const { perform, charges, durably } = await openShop(undefined, dialect)
    const mail = durably.defineJob({ name: 'mail', input: z.object({ to: z.string() }) }, () => 'sent')
    const triggered: string[] = []
    durably.on('run:trigger', ({ jobName }) => triggered.push(jobName))
    const { run } = await perform(async (ctx) => {
      const lost = ctx.transaction('lost', async (transaction: Trx) => {
        await mail.trigger({ to: 'nobody' }, { transaction })
        throw new Error('rolled back')
      })
      await lost.catch(() => {})
      return ctx.transaction('charge', async (transaction: Trx) => {
        await charge(transaction)
        const { id } = await mail.trigger({ to: 'me' }, { transaction })
        expect(triggered).toEqual(['job'])
        return id
      })
    })
    expect(await charges()).toEqual([1])
    expect(triggered).toEqual(['job', 'mail'])
    expect(run).toMatchObject({ status: 'completed' })
    expect(await durably.getRuns({ jobName: 'mail' })).toMatchObject([
      { id: run?.status === 'completed' && run.output, status: 'completed', payload: { to: 'me' } },
    ])
  })
})

describe.each(FILES)('ctx.transaction on a full disk, with $name', ({ dialect }) => {
  it('is tried again until there is room, and never fails the run', async () => {
    const { perform, charges, durably } = await openShop(undefined, dialect)
    const troubles: string[] = []
    durably.on('worker:error', ({ code }) => troubles.push(code))
    let tries = 0
    const { run } = await perform((ctx) =>
      ctx.transaction('charge', async (trx: Trx) => {
        tries += 1
        await charge(trx)
        await sql.raw(`pragma max_page_count = ${tries === 1 ? 1 : 1_000_000}`).execute(trx)
        await sql`insert into charges (id, run) values (2, ${'x'.repeat(1_000_000)})`.execute(trx)
      }),
    )
    expect(run).toMatchObject({ status: 'completed', attempt: 1 })
    expect([tries, troubles]).toEqual([2, ['STORAGE_FULL']])
    expect(await charges()).toEqual([1, 2])
  })
})

describe('ctx.transaction', () => {
  it('is taken back when it is open for too long', async () => {
    const { perform, charges } = await openShop()
    const { run } = await perform((ctx) =>
      ctx.transaction('slow', { timeout: 30 }, async (trx: Trx) => {
        await charge(trx)
        await new Promise(() => {})
      }),
    )
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'TRANSACTION_TIMEOUT' } })
    expect(await charges()).toEqual([])
  })

  it('is tried again by its policy', async () => {
    const { perform, charges } = await openShop()
    const { run, steps } = await perform((ctx) =>
      ctx.transaction('charge', { retry: { maxAttempts: 2, delay: 0 } }, async (trx: Trx, { attempt }) => {
        await charge(trx, attempt)
        if (attempt === 1) throw new Error('no money yet')
        return attempt
      }),
    )
    expect(run).toMatchObject({ status: 'completed', output: 2 })
    expect(steps.map(({ status }) => status)).toEqual(['failed', 'completed'])
    expect(await charges()).toEqual([2])
  })

  it('is taken back when its result cannot be stored', async () => {
    const { perform, charges } = await openShop()
    const { run } = await perform((ctx) => ctx.transaction('odd', (trx: Trx) => charge(trx).then(() => new Date(0))))
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'SERIALIZATION' } })
    expect(await charges()).toEqual([])
  })

  it('does not run again what another worker recorded', async () => {
    const { durably, storage, charges } = await openShop()
    let bodies = 0
    const job = defineJob({ name: 'job', input: z.object({}) }, async (ctx) => {
      const result = await ctx.transaction('charge', async (trx: Trx) => {
        bodies += 1
        await charge(trx)
        return bodies
      })
      // The first execution ends here.
      if (bodies === 1)
        await new Promise<void>(
          (resolve) => void (bodies === 2 ? resolve() : ctx.signal.addEventListener('abort', () => resolve())),
        )
      return result
    })
    const { id } = await durably.register({ job }).job.trigger({})
    durably.start()
    await expect.poll(charges).toEqual([1])
    await durably.stop({ timeout: 0 })
    bodies = 10
    const other = createDurably({ storage, logger: null })
    other.register({ job })
    await other.runUntilIdle()
    expect(await other.getRun(id)).toMatchObject({ status: 'completed', output: 1 })
    expect(bodies).toBe(10)
  })

  it('is taken back when another worker has the run by then', async () => {
    const { storage, durably, charges } = await openShop(
      firstTime(async (real, ...args) => {
        await thief.recover({ workerId: durably.health().workerId })
        await thief.runUntilIdle()
        return real(...args)
      }),
    )
    const bodies: number[] = []
    const job = (id: number) =>
      defineJob({ name: 'job', input: z.object({}) }, (ctx) =>
        ctx.transaction('charge', async (trx: Trx) => {
          bodies.push(id)
          await charge(trx, id)
          return id
        }),
      )
    const thief = createDurably({ storage, logger: null })
    thief.register({ job: job(2) })
    const lost: string[] = []
    durably.on('worker:lease-lost', ({ runId }) => lost.push(runId))
    const { id } = await durably.register({ job: job(1) }).job.trigger({})
    await durably.runUntilIdle()
    expect(bodies).toEqual([2, 1])
    expect(lost).toEqual([id])
    expect(await charges()).toEqual([2])
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 2 })
  })

  it('is not repeated when only its answer was lost', async () => {
    const { perform, charges, durably } = await openShop(
      firstTime(async (real, ...args) => {
        await real(...args)
        throw cut()
      }),
    )
    durably.use(withLogPersistence())
    const troubles: string[] = []
    durably.on('worker:error', ({ during }) => troubles.push(during))
    let bodies = 0
    const { id, run } = await perform(async (ctx) => {
      const first = await ctx.transaction('charge', async (trx: Trx, { log }) => {
        bodies += 1
        log.info('charging')
        await charge(trx, bodies)
        return bodies
      })
      return [first, await ctx.run('after', () => 'fine')]
    })
    expect(run).toMatchObject({ status: 'completed', output: [1, 'fine'] })
    expect([bodies, await charges(), troubles]).toEqual([1, [1], ['transaction']])
    expect(await durably.getLogs(id)).toHaveLength(1)
    const stored = await durably.getEvents(id)
    expect(stored.filter(({ type }) => type === 'step:complete')).toHaveLength(2)
    expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1))
  })

  it('is repeated when it was cut before its end', async () => {
    const { perform, charges, durably } = await openShop(
      firstTime(async (real, body, timeoutMs) => {
        const broken = real(async (trx) => {
          await body(trx)
          throw new Error('The server went away before COMMIT.')
        }, timeoutMs)
        await broken.catch(() => {})
        throw cut()
      }),
    )
    durably.use(withLogPersistence())
    let bodies = 0
    const { id, run } = await perform((ctx) =>
      ctx.transaction('charge', async (trx: Trx, { log }) => {
        bodies += 1
        log.info('charging')
        await charge(trx, bodies)
        return bodies
      }),
    )
    expect(run).toMatchObject({ status: 'completed', output: 2 })
    expect(await charges()).toEqual([2])
    expect(await durably.getLogs(id)).toHaveLength(2)
    const stored = await durably.getEvents(id)
    expect(stored.filter(({ type }) => type === 'step:complete')).toHaveLength(1)
  })

  it('that comes through after all finds its number taken', async () => {
    let late: ReturnType<CommitWith> | undefined
    const { perform, charges } = await openShop(
      firstTime(async (real, body, timeoutMs) => {
        const { commit } = await body({} as Trx).catch(() => ({ commit: null }))
        if (commit === null) throw new Error('The body must not need a transaction here.')
        queueMicrotask(() => {
          late = new Promise((resolve) => setTimeout(resolve, paced(1000))).then(() =>
            real(async (trx) => {
              await charge(trx, 7)
              return { commit, value: null as never }
            }, timeoutMs),
          )
        })
        throw cut()
      }),
    )
    const { run } = await perform(async (ctx) => ctx.transaction('nothing', async () => 'done'))
    expect(run).toMatchObject({ status: 'completed', output: 'done' })
    expect(await late).toMatchObject({ answer: { kept: false } })
    expect(await charges()).toEqual([])
  })

  it('is tried again when the database was busy, without a failure', async () => {
    const { perform, charges } = await openShop(
      firstTime(async () => {
        throw new StorageError('STORAGE_BUSY', 'database is locked')
      }),
    )
    let bodies = 0
    const { run, steps } = await perform((ctx) =>
      ctx.transaction('charge', async (trx: Trx) => {
        bodies += 1
        await charge(trx)
      }),
    )
    expect(run).toMatchObject({ status: 'completed' })
    expect([bodies, await charges(), steps.length]).toEqual([1, [1], 1])
  })

  it('is tried again when the storage knows the error of its body for its own trouble', async () => {
    const { perform, charges } = await openShop(
      firstTime(async (real, body, timeoutMs) => {
        await expect(real(body, timeoutMs)).rejects.toThrow('ECONNRESET')
        throw cut()
      }),
    )
    let bodies = 0
    const { run, steps } = await perform((ctx) =>
      ctx.transaction('charge', async (trx: Trx) => {
        bodies += 1
        await charge(trx)
        if (bodies === 1) throw new Error('read ECONNRESET')
        return bodies
      }),
    )
    expect(run).toMatchObject({ status: 'completed', output: 2 })
    expect([await charges(), steps.length]).toEqual([[1], 1])
  })

  it.each(['timed_out', 'pending'] as const)('is taken back at once when its run is to be %s', async (status) => {
    const { durably, charges } = await openShop()
    const reasons: unknown[] = []
    const timeout = status === 'timed_out' ? 100 : undefined
    let begun = () => {}
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve
    })
    const job = durably.defineJob({ name: 'job', input: z.object({}), timeout }, (ctx) =>
      ctx.transaction('charge', async (trx: Trx, { signal }) => {
        await charge(trx)
        signal.addEventListener('abort', () => reasons.push(signal.reason.reason))
        begun()
        await new Promise(() => {})
      }),
    )
    durably.start()
    const { id } = await job.trigger({})
    await hasBegun
    if (status === 'pending') await durably.stop({ timeout: 0 })
    await expect.poll(async () => (await job.getRun(id))?.status).toBe(status)
    expect(reasons).toEqual([status === 'pending' ? 'shutdown' : 'timeout'])
    expect(await charges()).toEqual([])
  })

  it('is the commit in flight of its run: parallel steps wait for its end', async () => {
    const { storage } = await openShop()
    const { commit, transaction } = storage
    let inFlight = 0
    let most = 0
    const counted = async <T>(call: Promise<T>): Promise<T> => {
      inFlight += 1
      most = Math.max(most, inFlight)
      return call.finally(() => {
        inFlight -= 1
      })
    }
    const { perform, charges } = openOn({
      ...storage,
      commit: (commits) => counted(commit(commits)),
      transaction: {
        ...transaction,
        commitWith: (...args: Parameters<CommitWith>) => counted(transaction.commitWith(...args)) as never,
      },
    })
    const order: string[] = []
    const { run, steps } = await perform(async (ctx) => {
      const first = ctx.run('before', () => 'before')
      await Promise.all([
        first,
        ctx.transaction('one', async (trx: Trx) => {
          await charge(trx, 1)
          await new Promise((resolve) => setTimeout(resolve, 30))
          order.push('one')
        }),
        ctx.run('beside', () => first).then(() => order.push('beside')),
        ctx.transaction('two', async (trx: Trx) => {
          await charge(trx, 2)
          order.push('two')
        }),
      ])
      return 'all'
    })
    expect(run).toMatchObject({ status: 'completed', output: 'all' })
    expect(order[0]).toBe('one')
    expect([...order].sort()).toEqual(['beside', 'one', 'two'])
    expect(await charges()).toEqual([1, 2])
    expect(steps).toHaveLength(4)
    expect(most).toBe(1)
  })

  it('stores once what a plugin asks for twice or gives up', async () => {
    const { perform, charges, durably } = await openShop()
    durably.use({
      name: 'odd',
      async aroundStep({ stepName }, next) {
        if (stepName === 'twice') await Promise.all([next(), next()])
        const value = await next()
        if (stepName === 'refused') throw new Error('not on my watch')
        return `${String(value)}, changed`
      },
    })
    const { run } = await perform(async (ctx) => [
      await ctx.transaction('twice', async (trx: Trx) => charge(trx, 1).then(() => 'one')),
      await ctx.transaction('refused', async (trx: Trx) => charge(trx, 2).then(() => 'two')),
    ])
    expect(run).toMatchObject({ status: 'completed', output: ['one', 'two'] })
    expect(await charges()).toEqual([1, 2])
  })

  it('is a new one when a plugin asks again after its body has failed', async () => {
    const { perform, charges, durably } = await openShop()
    const asked: unknown[] = []
    durably.use({
      name: 'again',
      async aroundStep(_step, next) {
        await next().catch((error: Error) => asked.push(error.message))
        asked.push(await charges())
        return next()
      },
    })
    let tries = 0
    const { run } = await perform((ctx) =>
      ctx.transaction('flaky', async (trx: Trx) => {
        await charge(trx, ++tries)
        if (tries === 1) throw new Error('no')
      }),
    )
    expect(run).toMatchObject({ status: 'completed' })
    // Nothing of the first is there, nor held, between the two.
    expect(asked).toEqual(['no', []])
    expect(await charges()).toEqual([2])
  })

  it('does not let a plugin go on without it and still happen', async () => {
    const { perform, charges, durably } = await openShop()
    durably.use({
      name: 'impatient',
      aroundStep: (_step, next) =>
        Promise.race([next(), new Promise((_, reject) => setTimeout(() => reject(new Error('too slow')), 20))]),
    })
    const { run, steps } = await perform((ctx) =>
      ctx.transaction('slow', async (trx: Trx) => {
        await charge(trx)
        await new Promise((resolve) => setTimeout(resolve, 60))
      }),
    )
    expect(run).toMatchObject({ status: 'failed', error: 'too slow' })
    expect(steps).toMatchObject([{ status: 'failed' }])
    expect(await charges()).toEqual([])
  })

  it('leaves everybody else their turn in a job with a long row of them', async () => {
    const { perform } = await openShop(undefined, BETTER_SQLITE3.dialect)
    let made = 0
    let goesOn = true
    const { run } = await perform(async (ctx) => {
      setTimeout(() => {
        goesOn = false
      })
      // Bounded, so that this test ends also when nobody else gets a turn.
      for (; goesOn && made < 2000; made++) await ctx.transaction(`number ${made}`, () => made)
    })
    expect(run).toMatchObject({ status: 'completed' })
    expect(made).toBeLessThan(2000)
  })

  it('refuses steps in its body', async () => {
    const { perform } = await openShop()
    const { run } = await perform((ctx) => ctx.transaction('outer', () => ctx.run('inner', () => 1)))
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'NESTED_STEP' } })
  })

  it('is told of on a storage that has none, and with options that make no sense', async () => {
    const durably = createDurably({ storage: createMemoryStorage(), logger: null })
    opened.push(durably)
    const job = durably.defineJob({ name: 'job', input: z.object({}) }, (ctx) => ctx.transaction('charge', () => 1))
    const { id } = await job.trigger({})
    await durably.runUntilIdle()
    expect(await job.getRun(id)).toMatchObject({ status: 'failed', errorDetail: { code: 'CAPABILITY_MISSING' } })
    const { perform } = await openShop()
    const { run } = await perform(async (ctx) => {
      const codes = []
      for (const timeout of [0, -1, Number.NaN, 2 ** 31, Number.POSITIVE_INFINITY]) {
        const refused = async () => ctx.transaction(`charge ${timeout}`, { timeout }, () => 1)
        codes.push(await refused().catch((error: unknown) => (error as { code?: unknown }).code))
      }
      return codes
    })
    expect(run).toMatchObject({ status: 'completed', output: Array.from({ length: 5 }, () => 'INVALID_OPTION') })
  })

  it('has the type of the instance, or of its annotation', async () => {
    const durably = await openMigrated(LIBSQL.dialect(newFile()))
    durably.defineJob({ name: 'typed', input: z.object({}) }, async (ctx) => {
      const value = await ctx.transaction('a', async (trx) => {
        expectTypeOf(trx).toEqualTypeOf<Trx>()
        return 1
      })
      expectTypeOf(value).toEqualTypeOf<number>()
      const asCore: JobContext = ctx
      return asCore.transaction('b', async (trx: Trx) => String(trx))
    })
    defineJob({ name: 'value', input: z.object({}) }, (ctx) =>
      ctx.transaction('a', async (trx) => {
        expectTypeOf(trx).toEqualTypeOf<unknown>()
      }),
    )
  })
})
