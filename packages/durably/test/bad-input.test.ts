import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DurablyError, type JobContext, type SqlDurably } from '../src/index'
import { DATABASES } from './databases'
import { newFile, openMigrated } from './instances'

const input = z.object({ user: z.object({ name: z.string(), age: z.number().int() }) })
const good = { user: { name: 'ann', age: 3 } }

/** What a call is refused with. */
async function refusal(promise: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error: unknown = await promise.then(
    () => 'it was accepted',
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof DurablyError)) throw new Error(`no DurablyError: ${String(error)}`)
  return { code: error.code, message: error.message }
}

/** How a run of such a job ends: `failed`, with the error recorded, and nothing of what was bad stored. */
async function failure(durably: SqlDurably, execute: (ctx: JobContext) => unknown, output?: z.ZodType) {
  const options = { name: 'bad', input: z.unknown(), ...(output !== undefined && { output }) }
  const job = durably.defineJob(options as typeof options & { output?: undefined }, execute)
  const { id } = await job.trigger(null)
  await durably.runUntilIdle()
  const run = await durably.getRun(id)
  expect(run).toMatchObject({ status: 'failed', output: null })
  return { error: run?.error, detail: run?.errorDetail, steps: await durably.getSteps(id) }
}

class Money {
  amount = 1
}

describe.each(DATABASES)('on $name', ({ dialect }) => {
  it('a payload that does not fit is refused with every path', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = durably.defineJob({ name: 'greet', input }, () => null)
    const bad = { user: { name: 7, age: 1.5 } } as unknown as typeof good
    const { code, message } = await refusal(job.trigger(bad))
    expect(code).toBe('VALIDATION')
    expect(message).toMatch(/^The payload of job "greet" does not match its schema: user\.name: .+; user\.age: .+$/)
    expect(await refusal(job.batchTrigger([{ payload: good }, { payload: bad }]))).toMatchObject({ code: 'VALIDATION' })
    expect(await durably.getRuns()).toEqual([])
  })

  it('a payload that JSON would change is refused with its place', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = durably.defineJob({ name: 'any', input: z.unknown() }, () => null)
    const cyclic: Record<string, unknown> = {}
    cyclic['self'] = cyclic
    const cases: [unknown, RegExp][] = [
      [{ at: new Date() }, /^The payload of job "any" at at: an instance of Date cannot/],
      [{ list: [1, { n: 1n }] }, /at list\[1\]\.n: .*bigint cannot be stored as JSON\. Store it as text/],
      [{ n: Number.NaN }, /at n: NaN is not a JSON number\. /],
      [{ m: new Map() }, /at m: an instance of Map cannot/],
      [{ price: new Money() }, /at price: an instance of Money cannot/],
      [() => 1, /: .*function cannot be stored as JSON\. Leave it out\.$/],
      [cyclic, /nested deeper than 64 levels, or cyclic$/],
    ]
    for (const [payload, message] of cases) {
      const refused = await refusal(job.trigger(payload))
      expect(refused).toEqual({ code: 'SERIALIZATION', message: expect.stringMatching(message) })
    }
    expect(await durably.getRuns()).toEqual([])
  })

  it('a payload over 1 MiB is refused, one just under is not', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = durably.defineJob({ name: 'any', input: z.string() }, () => null)
    expect(await refusal(job.trigger('x'.repeat(1024 * 1024)))).toEqual({
      code: 'PAYLOAD_TOO_LARGE',
      message: 'The payload of job "any" is 1048578 bytes, the limit is 1048576. Store a reference instead.',
    })
    expect(await durably.getRuns()).toEqual([])
    await job.trigger('x'.repeat(1024 * 1024 - 2))
  })

  it('options that make no sense are refused', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = durably.defineJob({ name: 'any', input: z.unknown() }, () => null)
    const bad = [
      { delay: -1 },
      { delay: 1, runAt: new Date() },
      { runAt: 'tomorrow' },
      { priority: 0.5 },
      { concurrencyKey: 'k', concurrencyLimit: 0 },
      { idempotencyKey: 'x'.repeat(513) },
      { tenant: 'a\0b' },
      { labels: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [String(n), ''])) },
    ]
    for (const options of bad) {
      expect(await refusal(job.trigger(null, options)), JSON.stringify(options)).toMatchObject({
        code: 'INVALID_OPTION',
      })
    }
    const status = 'done' as 'completed'
    expect(await refusal(durably.getRuns({ status }))).toMatchObject({ code: 'INVALID_OPTION' })
    expect(await refusal(durably.getRuns({ limit: 0 }))).toMatchObject({ code: 'INVALID_OPTION' })
    expect(await refusal(durably.purge({ olderThan: -1 }))).toMatchObject({ code: 'INVALID_OPTION' })
    expect(await durably.getRuns()).toEqual([])
  })

  it('an unknown run is null to a read and NOT_FOUND to a command', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = durably.defineJob({ name: 'any', input: z.unknown() }, () => null)
    const id = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
    expect([await durably.getRun(id), await durably.getSteps(id), await durably.getLogs(id)]).toEqual([null, [], []])
    const commands = [
      () => durably.retry(id),
      () => durably.cancel(id),
      () => durably.deleteRun(id),
      () => job.wait(id),
    ]
    for (const command of commands) {
      const refused = await refusal(command())
      expect(refused).toEqual({ code: 'NOT_FOUND', message: expect.stringContaining(id) })
    }
  })

  it('a command in the wrong state is CONFLICT and changes nothing', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const job = durably.defineJob({ name: 'any', input: z.unknown() }, () => null)
    const done = await job.trigger(null)
    await durably.runUntilIdle()
    const waiting = await job.trigger(null, { delay: 60_000 })
    const before = await durably.getRuns()
    for (const [id, command] of [
      [done.id, () => durably.retry(done.id)],
      [done.id, () => durably.cancel(done.id)],
      [waiting.id, () => durably.retry(waiting.id)],
      [waiting.id, () => durably.deleteRun(waiting.id)],
    ] as const) {
      expect(await refusal(command())).toEqual({ code: 'CONFLICT', message: expect.stringContaining(id) })
    }
    expect(await durably.getRuns()).toEqual(before)
  })

  it('two jobs of one name are refused, the same job twice is not', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const define = () => durably.defineJob({ name: 'one', input: z.unknown() }, () => 1)
    define()
    expect(define).toThrow('A job named "one" is already registered. Job names must be unique.')
  })

  it('a step name used twice fails the run and names both places', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const { error, detail, steps } = await failure(durably, async (ctx) => {
      await ctx.run('twice', () => 1)
      await ctx.run('twice', () => 2)
    })
    expect(detail).toMatchObject({ code: 'DUPLICATE_STEP' })
    expect(error).toMatch(
      /Step "twice" was used twice in one execution: first .*bad-input\.test\.ts.*, then .*bad-input/,
    )
    expect(steps).toMatchObject([{ name: 'twice', output: 1 }])
  })

  it('a step inside a step fails the run', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const { error, detail, steps } = await failure(durably, (ctx) => ctx.run('outer', () => ctx.run('inner', () => 1)))
    expect(detail).toMatchObject({ code: 'NESTED_STEP', stepName: 'outer' })
    expect(error).toContain('Step "inner" was called inside the body of step "outer"')
    expect(steps).toMatchObject([{ name: 'outer', status: 'failed' }])
  })

  it('an output that does not fit its schema fails the run, with the detail recorded', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const { error, detail } = await failure(durably, () => ({ total: 'x' }), z.object({ total: z.number() }))
    expect(error).toMatch(/output of job "bad" does not match its schema: total: /i)
    expect(detail).toMatchObject({ code: 'VALIDATION', issues: [{ path: 'total' }] })
  })

  it('a result of a step or job that cannot be stored fails the run and is not stored', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const ofStep = await failure(durably, (ctx) => ctx.run('now', () => ({ at: new Date() })))
    expect(ofStep.error).toBe(
      'The output of step "now" at at: an instance of Date cannot be stored as JSON. ' +
        'Store its ISO text, date.toISOString(), and make the Date where it is used.',
    )
    expect(ofStep.steps).toMatchObject([{ name: 'now', status: 'failed', output: undefined }])
    const other = await openMigrated(dialect(newFile()))
    const large = await failure(other, (ctx) => ctx.run('large', () => 'x'.repeat(1024 * 1024)))
    expect(large.error).toContain('The output of step "large" is 1048578 bytes')
    const last = await openMigrated(dialect(newFile()))
    expect((await failure(last, () => 1n)).error).toMatch(/bigint cannot be stored as JSON/)
  })

  it('whatever a job throws is recorded', async () => {
    const thrown: [unknown, string][] = [
      ['text', 'text'],
      [undefined, 'undefined'],
      [{ reason: 'odd' }, '{"reason":"odd"}'],
      [new Error(`bad \0 and \ud800`), 'bad  and \ufffd'],
      [Object.create(null), '{}'],
    ]
    for (const [value, message] of thrown) {
      const durably = await openMigrated(dialect(newFile()))
      const { error } = await failure(durably, () => {
        throw value
      })
      expect(error).toBe(message)
    }
  })
})
