import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { type DurablyEvent, InvalidOptionError, type LogArchive, LogArchiveError } from '@coji/durably-core'
import type { ArchivingStorage, LogRecord, Storage } from '@coji/durably-core/storage'
import { createFakeClock } from '@coji/durably-core/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { blobArchive, withLogPersistence, withLogRetention, type LogRetentionOptions } from '../src/index'
import { fileArchive } from '../src/node'
import { anything, instance } from './job-instance'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'durably-logs-'))
  folders.push(folder)
  return folder
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

/** Of which nothing takes any time, so that the clock of a test decides when things happen. */
function inMemory(): { archive: LogArchive; kept: Map<string, readonly LogRecord[]> } {
  const kept = new Map<string, readonly LogRecord[]>()
  const archive: LogArchive = {
    async write(name, pages) {
      const logs: LogRecord[] = []
      for await (const page of pages) logs.push(...page)
      kept.set(name, logs)
    },
    async *read(name) {
      const logs = kept.get(name)
      if (logs === undefined) throw new LogArchiveError('missing', `There is no "${name}".`)
      yield logs
    },
    remove: async (name) => void kept.delete(name),
  }
  return { archive, kept }
}

function inBlobs(): LogArchive {
  const blobs = new Map<string, Uint8Array<ArrayBuffer>>()
  return blobArchive({
    put: async (key, bytes) => void blobs.set(key, bytes),
    get: async (key) => blobs.get(key) ?? null,
    delete: async (key) => void blobs.delete(key),
  })
}

/** Of a process that dies before one of its calls. */
function mortal(storage: ReturnType<typeof createMemoryStorage>, life: { left: number }): Storage {
  const archiving = Object.fromEntries(
    Object.entries(storage.archiving).map(([name, call]) => [
      name,
      (...args: readonly unknown[]) => {
        life.left -= 1
        if (life.left < 0) return Promise.reject(new Error('This process is dead.'))
        return (call as (...all: readonly unknown[]) => Promise<unknown>)(...args)
      },
    ]),
  )
  return { ...storage, archiving: archiving as unknown as ArchivingStorage }
}

/** An instance whose storage, engine and plugin share one clock that stands still. */
function setUp(options: Partial<LogRetentionOptions> = {}) {
  const clock = createFakeClock()
  const storage = createMemoryStorage({ now: clock.now })
  const { archive, kept } = inMemory()
  const open = (own: Partial<LogRetentionOptions> = {}) =>
    instance({ storage, environment: { clock } })
      .use(withLogPersistence())
      .use(withLogRetention({ archive, days: 1, clock, ...options, ...own }))
  const durably = open()
  let lines: readonly string[] = []
  let isBad = false
  const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => {
    for (const line of lines) ctx.log.info(line, { line })
    if (isBad) throw new Error('no')
  })
  async function log(...all: readonly string[]): Promise<string> {
    lines = all
    const { id } = await job.trigger({})
    await durably.runUntilIdle()
    return id
  }
  async function retryWith(id: string, ...all: readonly string[]): Promise<void> {
    lines = all
    await durably.retry(id)
    await durably.runUntilIdle()
  }
  const failing = async (...all: readonly string[]) => {
    isBad = true
    const id = await log(...all)
    isBad = false
    return id
  }
  const messages = async (id: string, page = {}) => (await durably.getLogs(id, page)).map(({ message }) => message)
  const inDatabase = async (id: string) => (await storage.logs.getLogs(id, {})).map(({ message }) => message)
  return { clock, storage, durably, open, archive, kept, log, failing, retryWith, messages, inDatabase }
}

describe('withLogRetention', () => {
  it('moves the logs of runs that ended some days ago, and reads them from there', async () => {
    const { clock, durably, kept, log, messages, inDatabase } = setUp()
    const id = await log('a', 'b')
    const before = await durably.getLogs(id)
    const events = await durably.getEvents(id)
    await clock.advance(DAY - HOUR)
    expect(kept.size).toBe(0)
    expect(await inDatabase(id)).toEqual(['a', 'b'])
    await clock.advance(2 * HOUR)
    expect(kept.size).toBe(1)
    expect(await inDatabase(id)).toEqual([])
    expect(await durably.getLogs(id)).toEqual(before)
    expect(await durably.getEvents(id)).toEqual(events)
    expect(await messages(id, { limit: 1 })).toEqual(['a'])
    expect(await messages(id, { after: before[0]?.id })).toEqual(['b'])
    expect(await messages(id, { after: before[1]?.id })).toEqual([])
  })

  it('leaves runs alone that have no logs, or have not ended', async () => {
    const { clock, durably, kept, log } = setUp()
    await log()
    await durably.trigger('elsewhere')
    await clock.advance(3 * DAY)
    expect(kept.size).toBe(0)
  })

  it('goes on after what a run logged before it was tried again', async () => {
    const { clock, storage, kept, durably, failing, retryWith, messages, inDatabase } = setUp()
    const id = await failing('a', 'b')
    await clock.advance(2 * DAY)
    await retryWith(id, 'c', 'd')
    expect(await inDatabase(id)).toEqual(['c', 'd'])
    expect(await messages(id)).toEqual(['a', 'b', 'c', 'd'])
    const all = await durably.getLogs(id)
    for (const [index, { id: after }] of all.entries()) {
      expect(await messages(id, { after })).toEqual(['a', 'b', 'c', 'd'].slice(index + 1))
      expect(await messages(id, { limit: index + 1 })).toEqual(['a', 'b', 'c', 'd'].slice(0, index + 1))
    }
    const { logRef } = (await storage.getRun(id)) ?? {}
    await clock.advance(2 * DAY)
    expect(await inDatabase(id)).toEqual([])
    expect(await durably.getLogs(id)).toEqual(all)
    expect((await storage.getRun(id))?.logRef).not.toBe(logRef)
    expect(kept.size).toBe(1)
  })

  it('shows each line once, wherever a process dies, and the next one ends what was begun', async () => {
    const lines = Array.from({ length: 2500 }, (_, index) => `line ${index}`)
    const left: number[] = []
    for (let nth = 1; left.at(-1) !== 0; nth++) {
      const { clock, storage, archive, kept, open, failing, retryWith, messages, inDatabase } = setUp({
        days: Infinity,
      })
      const id = await failing(...lines)
      await clock.advance(DAY)
      const life = { left: nth }
      const dying = instance({ storage: mortal(storage, life), environment: { clock } })
      dying.use(withLogRetention({ archive, days: 1, clock }))
      await clock.advance(HOUR)
      left.push((await inDatabase(id)).length)
      expect(await messages(id)).toEqual(lines)
      expect(await messages(id, { limit: 2400 })).toEqual(lines.slice(0, 2400))
      await dying.close()
      await retryWith(id, 'again')
      expect(await messages(id)).toEqual([...lines, 'again'])
      open({ days: 1 })
      await clock.advance(3 * DAY)
      expect(await inDatabase(id)).toEqual([])
      expect(await messages(id)).toEqual([...lines, 'again'])
      expect(kept.size).toBe(1)
    }
    expect([...new Set(left)]).toEqual([2500, 1500, 500, 0])
  })

  it('ends what another has begun who died, without writing it anew', async () => {
    const { clock, storage, archive, kept, open, log, messages, inDatabase } = setUp({ days: Infinity })
    const id = await log('a', 'b')
    const { id: last = '' } = (await storage.logs.getLogs(id, {})).at(-1) ?? {}
    const { version = 0 } = (await storage.getRun(id)) ?? {}
    const logs = await storage.logs.getLogs(id, {})
    await storage.archiving.announce('begun')
    await archive.write('begun', pages(logs))
    await storage.archiving.refer({ runId: id, version, name: 'begun' })
    await storage.archiving.removeArchived({ runId: id, name: 'begun', last, limit: 1 })
    expect([await inDatabase(id), await messages(id)]).toEqual([['b'], ['a', 'b']])
    open({ days: 1 })
    await clock.advance(2 * DAY)
    expect([await inDatabase(id), await messages(id)]).toEqual([[], ['a', 'b']])
    expect([...kept.keys()]).toEqual(['begun'])
  })

  it('removes what belongs to runs that are deleted or purged', async () => {
    const { clock, durably, kept, log } = setUp()
    const [first] = [await log('a'), await log('b'), await log('c')]
    await clock.advance(2 * DAY)
    expect(kept.size).toBe(3)
    await durably.deleteRun(first ?? '')
    await expect.poll(() => kept.size).toBe(2)
    await durably.purge()
    await clock.advance(HOUR)
    expect(kept.size).toBe(0)
  })

  it('is used by several processes at once', async () => {
    const { clock, kept, open, log, messages } = setUp()
    open()
    open()
    const ids = [await log('a'), await log('b'), await log('c')]
    await clock.advance(2 * DAY)
    for (const id of ids) expect(await messages(id)).toHaveLength(1)
    expect(kept.size).toBe(3)
  })

  it('loses nothing when a write fails, and tries again', async () => {
    const { archive, kept } = inMemory()
    let isFull = true
    const write: LogArchive['write'] = (name, pages) =>
      isFull ? Promise.reject(new Error('disk full')) : archive.write(name, pages)
    const { clock, durably, log, messages, inDatabase } = setUp({ archive: { ...archive, write } })
    const errors: DurablyEvent<'worker:error'>[] = []
    durably.on('worker:error', (event) => errors.push(event))
    const id = await log('a')
    await clock.advance(DAY + HOUR)
    expect(errors[0]).toMatchObject({ during: 'log-retention', error: 'disk full' })
    expect(await inDatabase(id)).toEqual(['a'])
    isFull = false
    await clock.advance(60_000)
    expect(await inDatabase(id)).toEqual([])
    expect(await messages(id)).toEqual(['a'])
    await clock.advance(2 * HOUR)
    expect(kept.size).toBe(1)
  })

  it('says what is wrong with the archive, and of the run nothing', async () => {
    const { clock, storage, durably, kept, failing, retryWith, messages, inDatabase } = setUp()
    const id = await failing('a')
    await clock.advance(2 * DAY)
    const [key = ''] = kept.keys()
    const logs = kept.get(key) as readonly LogRecord[]
    kept.delete(key)
    const reason = () => durably.getLogs(id).catch((error: unknown) => (error as LogArchiveError).reason)
    expect(await reason()).toBe('missing')
    await expect(durably.getLogs(id)).rejects.toThrow(`no "${(await storage.getRun(id))?.logRef}"`)
    const said = (await durably.getEvents(id)).find(({ type }) => type === 'log:write')
    expect(said).toMatchObject({ message: expect.stringContaining('There is no') })
    expect(await durably.getRun(id)).toMatchObject({ status: 'failed', error: 'no' })
    const without = instance({ storage })
    await expect(without.getLogs(id)).rejects.toMatchObject({ code: 'LOGS_UNAVAILABLE', reason: 'no-archive' })

    // New logs stay, and runs that come after it have theirs moved.
    await retryWith(id, 'b')
    const other = await failing('c')
    await clock.advance(2 * DAY)
    expect([await inDatabase(id), await inDatabase(other)]).toEqual([['b'], []])
    kept.set(key, logs)
    expect(await messages(id)).toEqual(['a', 'b'])
  })

  it('comes a minute later when the archive was away', async () => {
    const { archive, kept } = inMemory()
    let isAway = false
    const read: LogArchive['read'] = (name) => {
      if (isAway) throw new LogArchiveError('unreachable', 'The archive is away.')
      return archive.read(name)
    }
    const { clock, failing, retryWith, inDatabase } = setUp({ archive: { ...archive, read } })
    const id = await failing('a')
    await clock.advance(2 * DAY)
    await retryWith(id, 'b')
    isAway = true
    await clock.advance(DAY + HOUR)
    expect(await inDatabase(id)).toEqual(['b'])
    isAway = false
    await clock.advance(MINUTE)
    expect(await inDatabase(id)).toEqual([])
    expect([...kept.values()].at(-1)?.map(({ message }) => message)).toEqual(['a', 'b'])
  })

  it('hears within a minute of what another process has set', async () => {
    const { clock, storage, kept, log } = setUp({ days: 30 })
    const operator = instance({ storage })
    await log('a')
    await clock.advance(2 * DAY)
    expect(kept.size).toBe(0)
    await operator.settings.set({ logRetentionDaysDb: 1 })
    await clock.advance(70_000)
    expect(kept.size).toBe(1)
    await operator.settings.set({ logRetentionDaysDb: null })
    await log('b')
    await clock.advance(3 * DAY)
    expect(kept.size).toBe(1)
  })

  it('with days: Infinity only reads', async () => {
    const { clock, durably, kept, log } = setUp({ days: Number.POSITIVE_INFINITY })
    await log('a')
    await clock.advance(99 * DAY)
    expect(kept.size).toBe(0)
    await durably.close()
    expect(clock.pendingTimers()).toBe(0)
  })

  it('refuses options that make no sense, and a storage that cannot keep names', () => {
    const { archive } = inMemory()
    const none = {} as LogArchive
    for (const options of [
      { archive: none },
      { archive, days: -1 },
      { archive, days: Number.NaN },
      { archive, every: 0 },
    ])
      expect(() => withLogRetention(options)).toThrow(InvalidOptionError)
    const { archiving: _none, ...storage } = createMemoryStorage()
    expect(() => instance({ storage }).use(withLogRetention({ archive }))).toThrow('"archiving"')
  })
})

const log = (over: Partial<LogRecord> = {}): LogRecord => ({
  id: 'log-1',
  runId: 'run-1',
  stepName: null,
  level: 'info',
  message: 'a "line"\nü',
  data: null,
  timestamp: '2026-01-31T09:00:00.000Z',
  ...over,
})

async function* pages(...all: readonly (readonly LogRecord[])[]) {
  for (const page of all) yield page
}

async function readAll(archive: LogArchive, name: string): Promise<LogRecord[]> {
  const logs: LogRecord[] = []
  for await (const page of archive.read(name)) logs.push(...page)
  return logs
}

describe.each([
  { name: 'fileArchive', open: () => fileArchive(newFolder()) },
  { name: 'blobArchive', open: inBlobs },
])('$name', ({ open }) => {
  it('gives back what was written', async () => {
    const archive = open()
    const logs = [
      log(),
      log({ id: 'log-2', data: '{\n"a": [1.5, "\\u0000 \\ud800 \u2028"]}', level: 'warn', stepName: 'pay' }),
      log({ id: 'log-3', data: 'null', level: 'error', message: '😀' }),
    ]
    await archive.write('r-1', pages(logs.slice(0, 2), [], logs.slice(2)))
    const read = await readAll(archive, 'r-1')
    const decoded = (all: readonly LogRecord[]) =>
      all.map(({ data, ...rest }) => ({ ...rest, data: data === null ? undefined : JSON.parse(data) }))
    expect(decoded(read)).toEqual(decoded(logs))
  })

  it('reads as far as somebody wants', async () => {
    const archive = open()
    const many = Array.from({ length: 20_000 }, (_, index) => log({ id: `log-${index}` }))
    await archive.write('many', pages(many))
    for await (const [first] of archive.read('many')) {
      expect(first?.id).toBe('log-0')
      break
    }
    expect(await readAll(archive, 'many')).toHaveLength(20_000)
  })

  it('has nothing of what failed half way', async () => {
    const archive = open()
    const failing = async function* () {
      yield [log()]
      throw new Error('database away')
    }
    await expect(archive.write('half', failing())).rejects.toThrow('database away')
    await expect(readAll(archive, 'half')).rejects.toMatchObject({ reason: 'missing' })
  })

  it('removes, also what is not there', async () => {
    const archive = open()
    await archive.write('gone', pages([log()]))
    await archive.remove('gone')
    await archive.remove('gone')
    await expect(readAll(archive, 'gone')).rejects.toMatchObject({ code: 'LOGS_UNAVAILABLE', reason: 'missing' })
  })

  it.each(['../secret', 'a/b', '', '.', '..', '.hidden', `${'x'.repeat(300)}`, 'a\0b', 'C:\\x'])(
    'does not take %j for a name',
    async (name) => {
      const archive = open()
      await expect(archive.write(name, pages([log()]))).rejects.toThrow(LogArchiveError)
      await expect(readAll(archive, name)).rejects.toThrow(LogArchiveError)
      await expect(Promise.resolve().then(() => archive.remove(name))).rejects.toThrow(LogArchiveError)
    },
  )
})

describe('blobArchive', () => {
  it('says that a blob is damaged', async () => {
    let bytes = new Uint8Array()
    const archive = blobArchive({
      put: async (_key, given) => {
        bytes = given
      },
      get: async () => bytes,
      delete: async () => {},
    })
    await archive.write('r-1', pages([log()]))
    const whole = bytes
    for (const length of [0, 5, whole.length - 9]) {
      bytes = whole.slice(0, length)
      await expect(readAll(archive, 'r-1')).rejects.toMatchObject({ reason: 'broken' })
    }
  })
})

describe('fileArchive', () => {
  it('has files that other programs read, and no others', async () => {
    const folder = newFolder()
    const archive = fileArchive(folder)
    await archive.write('01ABCDEF-1', pages([log({ data: '{"n":1}' })], [log({ id: 'log-2' })]))
    const path = join(folder, '01AB', '01ABCDEF-1.jsonl.gz')
    expect(filesIn(folder)).toEqual([path])
    const lines = gunzipSync(readFileSync(path)).toString().trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { id: 'log-1', data: { n: 1 } },
      { id: 'log-2' },
    ])
  })

  it('says that a file is damaged, wherever it ends', async () => {
    const folder = newFolder()
    const archive = fileArchive(folder)
    const many = Array.from({ length: 3000 }, (_, index) => log({ id: `log-${index}`, message: String(Math.random()) }))
    await archive.write('r-1', pages(many))
    const [path = ''] = filesIn(folder)
    const whole = readFileSync(path)
    for (const part of [0, 0.1, 0.5, 0.99]) {
      writeFileSync(path, whole)
      truncateSync(path, Math.floor(whole.length * part))
      await expect(readAll(archive, 'r-1')).rejects.toMatchObject({ reason: 'broken' })
    }
    writeFileSync(path, 'no gzip')
    await expect(readAll(archive, 'r-1')).rejects.toMatchObject({ reason: 'broken' })
  })

  it('takes away what a process left that died while it wrote', async () => {
    const folder = newFolder()
    const archive = fileArchive(folder)
    await archive.write('r-1', pages([log()]))
    const [path = ''] = filesIn(folder)
    writeFileSync(`${path}.draft`, 'half')
    await archive.remove('r-1')
    expect(existsSync(path)).toBe(false)
    expect(filesIn(folder)).toEqual([])
  })
})
