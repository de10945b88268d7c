import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { sqlocal } from '../src/drivers/sqlocal'
import { createKyselyStorage, type KyselyStorage } from '../src/kysely-storage'
import { removeFile } from './contract-setup'

const { Worker: RealWorker } = globalThis

let file = ''
let storage: KyselyStorage

beforeEach(() => {
  file = `unheard-${crypto.randomUUID()}.sqlite3`
  storage = createKyselyStorage({ dialect: sqlocal(file) })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})

afterEach(async () => {
  vi.useRealTimers()
  globalThis.Worker = RealWorker
  await storage.close()
  await removeFile(file)
})

/** What became of the workers that were started: the first of them start and stand still. */
function standStill(count: number): string[] {
  const lives: string[] = []
  globalThis.Worker = class extends RealWorker {
    readonly #number = lives.length

    constructor(url: string | URL, options?: WorkerOptions) {
      super(lives.length < count ? 'data:text/javascript,' : url, options)
      lives.push('started')
    }

    override terminate(): void {
      lives[this.#number] = 'ended'
      super.terminate()
    }
  }
  return lives
}

it('a worker of which nothing is heard is ended after ten seconds, and another one opens the file', async () => {
  const lives = standStill(1)
  const migrated = storage.migrate()
  await expect.poll(() => lives).toEqual(['started'])
  await vi.advanceTimersByTimeAsync(9_000)
  expect(lives).toEqual(['started'])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(lives).toEqual(['ended', 'started'])
  await migrated
  expect(await storage.counts({})).toMatchObject({ pending: 0 })
  expect(lives).toEqual(['ended', 'started'])
})

it('when nothing is heard of the second one either, the error says that and no more', async () => {
  const lives = standStill(2)
  const migrated = storage.migrate().catch((error: unknown) => error)
  await expect.poll(() => lives).toEqual(['started'])
  await vi.advanceTimersByTimeAsync(60_000)
  const error = await migrated
  expect(error).toMatchObject({ code: 'STORAGE_CANNOT_OPEN' })
  expect(String(error)).toMatch(/did not answer within 50 s.*reload the page/)
  expect(String(error)).not.toMatch(/plugin|host/)
  expect(lives).toEqual(['ended', 'ended'])
})

it('whoever waits for the opening hears that, not of a transaction', async () => {
  const lives = standStill(1)
  const migrated = storage.migrate()
  await expect.poll(() => lives).toEqual(['started'])
  const waiting = storage.counts({}).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(5_000)
  const error = await waiting
  expect(error).toMatchObject({ code: 'STORAGE_UNAVAILABLE', mayHaveArrived: false })
  expect(String(error)).toMatch(/is still being opened/)
  await vi.advanceTimersByTimeAsync(5_000)
  await migrated
})
