import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { createDurably, type Durably } from '@coji/durably-core'
import { openJsonLinesStorage } from '../src/json-lines-storage.ts'
import { type Folder, newFolder } from './folder.ts'

const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const

let folder: Folder
let file: string
const open: Durably[] = []

beforeEach(() => {
  folder = newFolder()
  file = folder.path('runs.jsonl')
})

afterEach(async () => {
  for (const durably of open.splice(0)) await durably.close()
  folder.remove()
})

function start() {
  const durably = createDurably({ storage: openJsonLinesStorage(file), logger: null })
  open.push(durably)
  return { durably, job: durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('step', () => 'done')) }
}

async function everything(durably: Durably): Promise<unknown> {
  const runs = await durably.getRuns()
  return { runs, steps: await Promise.all(runs.map(({ id }) => durably.getSteps(id))) }
}

/** Three acknowledged runs, and where the last line begins. */
async function prepare() {
  const { durably, job } = start()
  await job.trigger(1)
  await durably.runUntilIdle()
  await job.trigger(2)
  const before = await everything(durably)
  const size = statSync(file).size
  await job.trigger(3)
  const after = await everything(durably)
  await durably.close()
  return { before, after, size, bytes: readFileSync(file) }
}

describe('a last line that was never acknowledged', () => {
  it('is taken off wherever it was cut, and nothing else is lost', async () => {
    const { before, size, bytes } = await prepare()
    for (let end = size; end < bytes.length; end++) {
      writeFileSync(file, bytes.subarray(0, end))
      const { durably } = start()
      assert.deepEqual(await everything(durably), before, `cut after ${end - size} bytes`)
      assert.equal(statSync(file).size, size)
      await durably.close()
    }
  })

  it('is taken off when it is garbage, with a newline or without', async () => {
    const { after, bytes } = await prepare()
    for (const garbage of ['{"runs":', '\0\0\0\0\0', 'deadbeefdeadbeef {}\n', '\n']) {
      writeFileSync(file, bytes)
      appendFileSync(file, garbage)
      const { durably, job } = start()
      assert.deepEqual(await everything(durably), after)
      const { id } = await job.trigger(4)
      await durably.runUntilIdle()
      await durably.close()
      const again = start().durably
      assert.equal((await again.getRun(id))?.status, 'completed')
      assert.equal((await again.getRuns()).length, 4)
      await again.close()
    }
  })
})

describe('damage', () => {
  it('in the middle is refused, and the file is left as it is', async () => {
    const { bytes } = await prepare()
    const damaged = Buffer.from(bytes)
    // Whatever is there, it is something else now.
    damaged[40] = damaged[40] === 88 ? 89 : 88
    writeFileSync(file, damaged)
    assert.throws(() => openJsonLinesStorage(file), { code: 'STORAGE_CORRUPT', message: /^Line 1 of / })
    assert.deepEqual(readFileSync(file), damaged)
  })
})

describe('a file', () => {
  it('is for one process at a time', () => {
    writeFileSync(`${file}.lock`, String(process.ppid))
    assert.throws(() => openJsonLinesStorage(file), { code: 'STORAGE_HELD' })
  })

  it('that was closed says so', async () => {
    const { durably, job } = start()
    await durably.close()
    await assert.rejects(job.trigger(1), { code: 'CLOSED' })
    await assert.rejects(durably.getRuns(), { code: 'STORAGE_CLOSED' })
  })

  it('grows by one line a write', async () => {
    const { durably, job } = start()
    const lines = () => readFileSync(file, 'utf8').split('\n').length - 1
    await job.batchTrigger([{ payload: 1 }, { payload: 2 }])
    assert.equal(lines(), 1)
    await durably.getRuns()
    assert.equal(lines(), 1)
  })
})
