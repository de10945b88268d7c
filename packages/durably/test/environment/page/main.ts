import { SQLocalKysely } from 'sqlocal/kysely'
import {
  createDurably,
  createMemoryStorage,
  DurablyError,
  type JobContext,
  type StandardSchema,
} from '../../../src/index'
import { sqlocal, type SqlocalConfig } from '../../../src/sqlocal'
import type { Answer, OpenConfig, PageApi } from '../page-api'

function dialectOf({ through, ...config }: OpenConfig) {
  if (through === undefined) return sqlocal(config as SqlocalConfig)
  const client = new SQLocalKysely(config.databasePath)
  return through === 'client' ? sqlocal({ client }) : client.dialect
}

function open(config: OpenConfig) {
  const durably = createDurably({ dialect: dialectOf(config), logger: null })
  const keep = durably.defineJob({ name: 'keep', input: textSchema() }, async (ctx, { text }) => {
    await ctx.run('measure', () => text.length)
    return text.length
  })
  const grow = durably.defineJob({ name: 'grow', input: growSchema() }, async (ctx, { steps, length }) => {
    for (let step = 0; step < steps; step++) await ctx.run(`step ${step}`, () => 'c'.repeat(length))
  })
  const troubles: string[] = []
  durably.on('worker:error', ({ code }) => troubles.push(code))
  return { durably, keep, grow, troubles }
}

const textSchema = () => trusted<{ readonly text: string }>()
const growSchema = () => trusted<{ readonly steps: number; readonly length: number }>()

/** A schema that takes everything. */
function trusted<T>(): StandardSchema<T> {
  return { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as T }) } }
}

async function answer(work: () => Promise<unknown>): Promise<Answer> {
  const started = performance.now()
  try {
    return { ok: true, value: await work(), ms: performance.now() - started }
  } catch (error) {
    const isOurs = error instanceof DurablyError
    const { message } = error as Error
    return { ok: false, isOurs, code: isOurs ? error.code : '', message, ms: performance.now() - started }
  }
}

async function leavesBranches(ctx: JobContext): Promise<void> {
  const branch = async () => void (await ctx.waitFor('branch'))
  const branches = [branch(), Promise.any([ctx.waitFor('any')])]
  await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setTimeout(resolve))
  await Promise.all(branches)
}

async function interrupt(): Promise<void> {
  const durably = createDurably({ storage: createMemoryStorage(), logger: null })
  const job = durably.defineJob({ name: 'branches', input: trusted<null>() }, leavesBranches)
  const ended = new Promise<void>((resolve) => {
    durably.on('run:cancel', ({ requested }) => !requested && resolve())
  })
  const started = new Promise((resolve) => durably.on('run:start', resolve))
  durably.start()
  const { id } = await job.trigger(null)
  await started
  await durably.cancel(id)
  await ended
  await durably.close()
  void Promise.reject(new Error('Not of the job.'))
}

const opened: Partial<Record<'app', ReturnType<typeof open>>> = {}

function app() {
  if (opened.app === undefined) throw new Error('migrate first')
  return opened.app
}

const api: PageApi = {
  migrate(config) {
    opened.app ??= open(config)
    return answer(() => app().durably.migrate())
  },
  trigger: (text) => answer(async () => (await app().keep.trigger({ text })).id),
  run(text) {
    app().durably.start()
    return answer(async () => (await app().keep.triggerAndWait({ text })).output)
  },
  grow(steps, length) {
    app().durably.start()
    return answer(async () => (await app().grow.trigger({ steps, length })).id)
  },
  troubles: () => app().troubles,
  runs: () =>
    answer(async () => (await app().durably.getRuns({ limit: 500 })).map(({ id, status }) => ({ id, status }))),
  payloadOf: (id) => answer(async () => (await app().durably.getRun(id))?.payload),
  cancel: (id) => answer(() => app().durably.cancel(id)),
  remove: (id) => answer(() => app().durably.deleteRun(id)),
  purge: () => answer(() => app().durably.purge({ olderThan: 0 })),
  interrupt: () => answer(interrupt),
  close: () => answer(() => app().durably.close()),
}

Object.assign(window, { api })
