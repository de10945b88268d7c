import { createDurably } from '@coji/durably-core'
import type { StorageError } from '@coji/durably-core/storage'
import { newRun } from '@coji/durably-core/testing'
import { sql } from 'kysely'
import { SQLocalKysely } from 'sqlocal/kysely'
import { describe, expect, it, vi, type TestContext } from 'vitest'
import { sqlocal } from '../src/drivers/sqlocal'
import { Questions } from '../src/drivers/sqlocal-silence'
import { createKyselyStorage, type KyselyStorage } from '../src/kysely-storage'
import { killWorker, removeFile } from './contract-setup'

/** What a test opens, closed when it is over; several tests wait at the same time. */
function newFolder({ onTestFinished }: TestContext) {
  const leftovers: (() => unknown)[] = []
  onTestFinished(async () => {
    for (const clean of leftovers.reverse()) await clean()
  })
  return {
    leftovers,
    newFile(): string {
      const file = `sqlocal-${crypto.randomUUID()}.sqlite3`
      leftovers.push(() => removeFile(file))
      return file
    },
    open(file: string): Opened {
      const dialect = sqlocal(file)
      const storage = createKyselyStorage({ dialect })
      leftovers.push(() => storage.close())
      return { dialect, storage }
    },
  }
}

interface Opened {
  readonly dialect: ReturnType<typeof sqlocal>
  readonly storage: KyselyStorage
}

const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const

/** How often somebody has looked whether a file is in use. */
function countLooks(file: string) {
  const looks = { count: 0 }
  const { createWritable } = FileSystemFileHandle.prototype
  FileSystemFileHandle.prototype.createWritable = function (this: FileSystemFileHandle, options) {
    if (this.name === file) looks.count += 1
    return createWritable.call(this, options)
  }
  return looks
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'no error',
    (error: StorageError) => error.code,
  )
}

describe.concurrent('clients that the application made', () => {
  it.for(['bare dialect', 'given client'])('work: %s', async (kind, test) => {
    const { leftovers, newFile } = newFolder(test)
    const client = new SQLocalKysely(newFile())
    const dialect = kind === 'bare dialect' ? client.dialect : sqlocal({ client })
    const durably = createDurably({ storage: createKyselyStorage({ dialect }) })
    leftovers.push(() => durably.close())
    await durably.migrate()
    const job = durably.defineJob({ name: 'add', input: anything }, (ctx) => ctx.run('add', () => 1 + 1))
    const run = await job.trigger(null)
    await durably.runUntilIdle()
    expect(await job.getRun(run.id)).toMatchObject({ status: 'completed', output: 2 })
  })

  it.for(['bare dialect', 'given client'])('are refused where they turned to memory: %s', async (kind, test) => {
    const { leftovers, newFile, open } = newFolder(test)
    const file = newFile()
    const { client: holder } = open(file).dialect
    const held = await holder.beginTransaction()
    await held.sql('create table held (id integer)')
    const client = new SQLocalKysely(file)
    const dialect = kind === 'bare dialect' ? client.dialect : sqlocal({ client })
    const storage = createKyselyStorage({ dialect })
    leftovers.push(() => storage.close())
    expect(await codeOf(storage.migrate())).toBe('STORAGE_HELD')
    await held.rollback()
  })
})

describe.concurrent('one file in several tabs', () => {
  it('is used in turns: nothing is sent while another has its turn', async (test) => {
    const { newFile, open } = newFolder(test)
    const file = newFile()
    const { dialect, storage } = open(file)
    await storage.migrate()
    const worker = dialect.client['processor'] as Worker
    const send = worker.postMessage.bind(worker)
    const sent: number[] = []
    worker.postMessage = (message: unknown) => {
      sent.push(performance.now())
      send(message)
    }
    const name = `durably:file:${file}`
    let [endTurn, isOver] = [() => {}, false]
    await new Promise<void>((begun) => {
      const turn = () => {
        begun()
        return new Promise<void>((resolve) => {
          endTurn = resolve
        })
      }
      navigator.locks.request(name, turn).catch(() => {
        isOver = true
      })
    })
    const began = performance.now()
    const enqueued = storage.enqueue([newRun()])
    const isWaiting = async () => isOver || (await navigator.locks.query()).pending?.some((lock) => lock.name === name)
    await test.expect.poll(isWaiting).toBe(true)
    // A turn that takes longer than a second is taken away: before that nothing may have been sent.
    expect(sent.filter((at) => at - began < 900)).toEqual([])
    endTurn()
    expect(await enqueued).toHaveLength(1)
    expect(sent).toHaveLength(1)
  })

  it('is STORAGE_HELD while another holds it, and fine afterwards', async (test) => {
    const { newFile, open } = newFolder(test)
    const file = newFile()
    const [first, second] = [open(file), open(file)]
    await first.storage.migrate()
    await second.storage.migrate()
    const held = await first.dialect.client.beginTransaction()
    await held.sql('create table held (id integer)')
    expect(await codeOf(second.storage.enqueue([newRun()]))).toBe('STORAGE_HELD')
    expect(await codeOf(open(file).storage.migrate())).toBe('STORAGE_HELD')
    await held.rollback()
    expect(await second.storage.enqueue([newRun()])).toHaveLength(1)
  })

  it('does not wait for ever for one that was frozen at its turn', async (test) => {
    const { newFile, open } = newFolder(test)
    const file = newFile()
    const { storage } = open(file)
    await storage.migrate()
    const frozen = navigator.locks.request(`durably:file:${file}`, () => new Promise(() => {})).catch(() => 'robbed')
    expect(await storage.enqueue([newRun()])).toHaveLength(1)
    expect(await frozen).toBe('robbed')
  })

  it('is given back by a transaction that fails', async (test) => {
    const { newFile, open } = newFolder(test)
    const { storage } = open(newFile())
    await storage.migrate()
    await expect(storage.db.transaction().execute((trx) => sql`select nonsense`.execute(trx))).rejects.toThrow()
    expect(await storage.enqueue([newRun()])).toHaveLength(1)
  })
})

describe('a page that is put to sleep while it opens its database', () => {
  const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

  it.for([0, 50, 100, 150, 200, 300])('goes on with it when it is awake again: after %s ms', async (ms, test) => {
    const { newFile, open } = newFolder(test)
    const { storage } = open(newFile())
    const migrated = storage.migrate()
    await pass(ms)
    document.dispatchEvent(new Event('freeze'))
    await pass(20)
    document.dispatchEvent(new Event('resume'))
    await migrated
    expect(await storage.enqueue([newRun()])).toHaveLength(1)
  })
})

/** Puts the page to sleep in the moment in which the worker is about to be asked for the nth time; resolves then. */
function asleepAtQuestion(nth: number, { onTestFinished }: TestContext): Promise<void> {
  const { locks } = navigator
  const request = locks.request.bind(locks) as (...given: unknown[]) => Promise<unknown>
  let questions = 0
  onTestFinished(() => void Reflect.deleteProperty(locks, 'request'))
  return new Promise((resolve) => {
    const value = (name: string, ...rest: unknown[]) => {
      const answer = request(name, ...rest)
      if (name.startsWith('_sqlocal_mutation_') && ++questions === nth) {
        document.dispatchEvent(new Event('freeze'))
        resolve()
      }
      return answer
    }
    Object.defineProperty(locks, 'request', { configurable: true, value })
  })
}

async function questionsOnTheirWay() {
  const { held = [], pending = [] } = await navigator.locks.query()
  return [...held, ...pending].filter(({ name }) => name?.startsWith('_sqlocal_mutation_'))
}

describe('a page that is put to sleep at a question to its worker', () => {
  it.for([1, 2, 3, 4])('goes on when it is awake: question %s', async (nth, test) => {
    const { newFile, open } = newFolder(test)
    const { storage } = open(newFile())
    const asleep = asleepAtQuestion(nth, test)
    const enqueued = storage.migrate().then(() => storage.enqueue([newRun()]))
    await asleep
    await expect.poll(questionsOnTheirWay).toEqual([])
    document.dispatchEvent(new Event('resume'))
    expect(await enqueued).toHaveLength(1)
  })
})

it.concurrent('opens the file again when its worker has died', async (test) => {
  const { newFile, open } = newFolder(test)
  const { dialect, storage } = open(newFile())
  await storage.migrate()
  await storage.enqueue([newRun()])
  killWorker(dialect.client['processor'] as Worker)
  expect(await storage.counts({})).toMatchObject({ pending: 1 })
})

describe.concurrent('a worker that dies', () => {
  const work = {
    'a query of the application': ({ storage }: Opened) => sql`select 1`.execute(storage.db),
    'a transaction of the application': ({ storage }: Opened) =>
      storage.db.transaction().execute((trx) => sql`select 1`.execute(trx)),
    'a call of durably': ({ storage }: Opened) => storage.counts({}),
  }

  it.for(Object.entries(work))('ends %s, and the next one works', async ([, call], test) => {
    const { newFile, open } = newFolder(test)
    const opened = open(newFile())
    await opened.storage.migrate()
    const worker = opened.dialect.client['processor'] as Worker
    worker.postMessage = () => killWorker(worker)
    expect(await codeOf(call(opened))).not.toBe('no error')
    expect(await codeOf(call(opened))).toBe('no error')
  })

  it('in silence ends the call too, others hear of it instead of a transaction, and the next one works', async (test) => {
    const { newFile, open } = newFolder(test)
    const { dialect, storage } = open(newFile())
    await storage.migrate()
    const worker = dialect.client['processor'] as Worker
    worker.terminate()
    const calls = await Promise.allSettled([storage.counts({}), storage.counts({}), storage.enqueue([newRun()])])
    expect(calls).toMatchObject([
      { reason: { code: 'STORAGE_UNAVAILABLE', message: expect.stringContaining('does not answer any more') } },
      ...[1, 2].map(() => ({
        reason: {
          code: 'STORAGE_UNAVAILABLE',
          mayHaveArrived: false,
          message: expect.stringMatching(/the worker of SQLite has not answered for \d+ s/),
        },
      })),
    ])
    expect(await storage.enqueue([newRun()])).toHaveLength(1)
  })

  it('is not taken for dead while it works on the file', async (test) => {
    const { newFile, open } = newFolder(test)
    const file = newFile()
    const { dialect, storage } = open(file)
    await storage.migrate()
    const looks = countLooks(file)
    const held = await dialect.client.beginTransaction()
    await held.sql('create table held (id integer)')
    let isOver = false
    const unanswered = new Questions(file).answered([new Promise(() => {})]).finally(() => {
      isOver = true
    })
    await test.expect.poll(() => looks.count).toBeGreaterThan(3)
    expect(isOver).toBe(false)
    await held.rollback()
    expect(await codeOf(unanswered)).toBe('STORAGE_UNAVAILABLE')
  })

  it('ends calls and the closing of a client that the application made', async (test) => {
    const { newFile } = newFolder(test)
    const client = new SQLocalKysely(newFile())
    const storage = createKyselyStorage({ dialect: sqlocal({ client }) })
    await storage.migrate()
    killWorker(client['processor'] as Worker)
    expect(await codeOf(storage.counts({}))).not.toBe('no error')
    expect(await codeOf(storage.counts({}))).not.toBe('CONNECTION_HELD')
    await storage.close()
  })
})

it('knows how long the oldest question has waited, also of two that were asked in one moment', async () => {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const questions = new Questions(null)
  const answers: (() => void)[] = []
  const asked = [1, 2].map(() => questions.answered([new Promise<void>((resolve) => answers.push(resolve))]))
  now = 7000
  answers[0]?.()
  await asked[0]
  expect(questions.waitMs).toBe(7000)
  answers[1]?.()
  await asked[1]
  expect(questions.waitMs).toBeNull()
})

/** Lets go of a file the moment somebody looks whether it is in use, and then it is not. */
function letGoAtLook(file: string, letGo: () => Promise<unknown>): void {
  const { createWritable } = FileSystemFileHandle.prototype
  let released: Promise<unknown> | null = null
  FileSystemFileHandle.prototype.createWritable = async function (this: FileSystemFileHandle, options) {
    if (this.name !== file) return createWritable.call(this, options)
    released ??= letGo()
    await released
    return vi.waitFor(() => createWritable.call(this, options), { timeout: 60_000 })
  }
}

it.concurrent('opens once more what was let go while it asked why it could not be opened', async (test) => {
  const { newFile, open } = newFolder(test)
  const file = newFile()
  const holder = open(file)
  await holder.storage.migrate()
  const held = await holder.dialect.client.beginTransaction()
  await held.sql('create table held (id integer)')
  letGoAtLook(file, () => held.rollback())
  expect(await codeOf(open(file).storage.counts({}))).toBe('no error')
})

it.concurrent('knows a held file by any name', async (test) => {
  const { leftovers, open } = newFolder(test)
  const file = `folder/größe ${crypto.randomUUID()}.sqlite3`
  leftovers.push(async () => (await navigator.storage.getDirectory()).removeEntry('folder', { recursive: true }))
  const holder = open(file)
  await holder.storage.migrate()
  const held = await holder.dialect.client.beginTransaction()
  await held.sql('create table held (id integer)')
  expect(await codeOf(open(file).storage.migrate())).toBe('STORAGE_HELD')
  await held.rollback()
})

it.concurrent('ends its opening when it is closed', async (test) => {
  const { newFile, open } = newFolder(test)
  const { storage } = open(newFile())
  const migrated = codeOf(storage.migrate())
  await storage.close()
  expect(await migrated).toBe('STORAGE_CLOSED')
  expect(await codeOf(storage.counts({}))).toBe('STORAGE_CLOSED')
})

it.concurrent('does not put memory in the place of a file that another tab holds', async (test) => {
  const { leftovers, newFile, open } = newFolder(test)
  const file = newFile()
  const holder = open(file)
  await holder.storage.migrate()
  const held = await holder.dialect.client.beginTransaction()
  await held.sql('create table held (id integer)')
  const storage = createKyselyStorage({ dialect: sqlocal({ databasePath: file, allowMemory: true }) })
  leftovers.push(() => storage.close())
  expect(await codeOf(storage.migrate())).toBe('STORAGE_HELD')
  await held.rollback()
  expect(await codeOf(storage.migrate())).toBe('no error')
})

it.concurrent('opens nothing before it is used, and nothing after it was closed', async (test) => {
  const { newFile, open } = newFolder(test)
  const file = newFile()
  const { storage } = open(file)
  const directory = await navigator.storage.getDirectory()
  await expect(directory.getFileHandle(file)).rejects.toThrow()
  await storage.migrate()
  await storage.close()
  expect(await codeOf(storage.counts({}))).toBe('STORAGE_CLOSED')
})

it('names its database the same however its path is written, and apart from every other', () => {
  const locationOf = (path: string, tablePrefix = 'durably_') =>
    createKyselyStorage({ dialect: sqlocal(path), tablePrefix }).location
  expect(locationOf('/folder/app.sqlite3')).toBe(locationOf('folder//app.sqlite3'))
  expect(locationOf('local')).toBe(locationOf(':localStorage:'))
  const all = ['app.sqlite3', 'folder/app.sqlite3', 'local', ':memory:', ':memory:', 'session', 'session']
  const locations = [...all.map((path) => locationOf(path)), locationOf('app.sqlite3', 'other_')]
  expect(new Set(locations).size).toBe(locations.length)
  expect(locations).not.toContain(undefined)
})
