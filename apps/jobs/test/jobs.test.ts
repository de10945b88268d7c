import { createDurably } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { afterEach, describe, expect, test } from 'vitest'
import { createBuildSearchIndex, createImportCsv, createMemoryFiles, type FileStore, openSearchIndex } from '../src'
import { checkImport, checkSearch, generateCsv, generateDocuments, sampleOrders, sampleQueries } from '../src/sample'
import { toBytes, toText } from '../src/text'

const SEED = 42
const MAX_STEP_BYTES = 16 * 1024

async function filesWith(file: string, chunks: AsyncIterable<string>): Promise<FileStore> {
  const files = createMemoryFiles()
  let text = ''
  for await (const chunk of chunks) text += chunk
  await files.write(file, toBytes(text))
  return files
}

function start(files: FileStore) {
  const durably = createDurably({ storage: createMemoryStorage() })
  const jobs = durably.register({
    importCsv: createImportCsv({ files }),
    buildSearchIndex: createBuildSearchIndex({ files }),
  })
  durably.start()
  opened.push(durably)
  return { durably, ...jobs }
}

const opened: { close(): Promise<void> }[] = []
afterEach(() => Promise.all(opened.splice(0).map((durably) => durably.close())))

/** Fails one write, once: what a full disk does to a step. */
function failingOnce(files: FileStore, reference: string): FileStore {
  let failed = false
  return {
    ...files,
    write: async (to, bytes) => {
      await files.write(to, to === reference && !failed ? bytes.slice(0, bytes.length / 2) : bytes)
      if (to !== reference || failed) return
      failed = true
      throw new Error('disk full')
    },
  }
}

describe('import-csv', () => {
  test('imports 100,000 rows as an independent computation has them', async () => {
    const files = await filesWith('orders.csv', generateCsv(100_000, SEED))
    const app = start(files)
    const { id, output } = await app.importCsv.triggerAndWait({ file: 'orders.csv', into: 'out' })
    expect(checkImport(output, 100_000, SEED)).toEqual([])
    expect(output.parts).toBe(20)
    const steps = await app.durably.getSteps(id)
    expect(steps.map((step) => step.name).slice(0, 3)).toEqual(['open', 'rows 1-5000', 'rows 5001-10000'])
    for (const step of steps) expect(JSON.stringify(step.output).length).toBeLessThan(MAX_STEP_BYTES)
    expect(await importedOrders(files, output.parts)).toEqual(goodOrders(100_000))
  })

  test('the check notices a wrong result', async () => {
    const app = start(await filesWith('orders.csv', generateCsv(1_000, SEED)))
    const { output } = await app.importCsv.triggerAndWait({ file: 'orders.csv', into: 'out' })
    expect(checkImport(output, 1_000, SEED)).toEqual([])
    const books = output.byCategory['books'] ?? { orders: 0, units: 0, cents: 0 }
    const wrong = { ...output, byCategory: { ...output.byCategory, books: { ...books, cents: books.cents + 1 } } }
    expect(checkImport(wrong, 1_000, SEED)).toHaveLength(1)
    expect(checkImport({ ...output, distinctCustomers: 1 }, 1_000, SEED)).toHaveLength(1)
    expect(checkImport({ ...output, rejected: {} }, 1_000, SEED)).toHaveLength(1)
  })

  test('goes on after a batch that failed half-way, with the same result', async () => {
    const files = await filesWith('orders.csv', generateCsv(1_000, SEED))
    const app = start(failingOnce(files, 'out/orders-00003.jsonl'))
    const run = await app.importCsv.trigger({ file: 'orders.csv', into: 'out', batchRows: 250 })
    await expect(app.importCsv.wait(run.id)).rejects.toThrow('disk full')
    await app.durably.retry(run.id)
    const { output } = await app.importCsv.wait(run.id)
    expect(checkImport(output, 1_000, SEED)).toEqual([])
    expect(await importedOrders(files, 4)).toEqual(goodOrders(1_000))
  })

  test('refuses a file with other columns', async () => {
    const app = start(await filesWith('orders.csv', chunksOf('a,b\n1,2\n')))
    await expect(app.importCsv.triggerAndWait({ file: 'orders.csv', into: 'out' })).rejects.toThrow('columns "a,b"')
  })

  test('takes a file with a byte order mark and no rows', async () => {
    const header = '\uFEFForder,ordered_on,customer,category,quantity,unit_price,note\n'
    const app = start(await filesWith('orders.csv', chunksOf(header)))
    const { output } = await app.importCsv.triggerAndWait({ file: 'orders.csv', into: 'out' })
    expect(output).toMatchObject({ rows: 0, accepted: 0, distinctCustomers: 0, firstDate: null, parts: 0 })
  })
})

describe('build-search-index', () => {
  const queries = sampleQueries(SEED)

  test('indexes 5,000 documents and answers as a full scan does', async () => {
    const files = await filesWith('docs.jsonl', generateDocuments(5_000, SEED))
    const app = start(files)
    const { id, output } = await app.buildSearchIndex.triggerAndWait({ file: 'docs.jsonl', into: 'index', queries })
    expect(checkSearch(output, 5_000, SEED)).toEqual([])
    expect(output.answers.map(({ hits }) => hits.length)).toEqual([10, 10, 10, 10, 10, 10, 0, 0])
    const steps = await app.durably.getSteps(id)
    for (const step of steps) expect(JSON.stringify(step.output).length).toBeLessThan(MAX_STEP_BYTES)
    const index = await openSearchIndex(files, output.index)
    expect(await index.search('FINAL ａｂｃ')).toEqual(output.answers[3]?.hits)
  })

  test('the check notices a wrong result', async () => {
    const app = start(await filesWith('docs.jsonl', generateDocuments(300, SEED)))
    const { output } = await app.buildSearchIndex.triggerAndWait({ file: 'docs.jsonl', into: 'index', queries })
    expect(checkSearch(output, 300, SEED)).toEqual([])
    const answers = output.answers.map(({ query, hits }) => ({ query, hits: [...hits].reverse() }))
    expect(checkSearch({ ...output, answers }, 300, SEED)).not.toEqual([])
    expect(checkSearch({ ...output, postings: output.postings - 1 }, 300, SEED)).toHaveLength(1)
  })

  test('goes on after a shard and a merge that failed half-way, with the same result', async () => {
    const files = await filesWith('docs.jsonl', generateDocuments(300, SEED))
    const app = start(failingOnce(failingOnce(files, 'index/shard 2.jsonl'), 'index/part 5.json'))
    const run = await app.buildSearchIndex.trigger({ file: 'docs.jsonl', into: 'index', shardDocuments: 100, queries })
    for (let failures = 0; failures < 2; failures++) {
      await expect(app.buildSearchIndex.wait(run.id)).rejects.toThrow('disk full')
      await app.durably.retry(run.id)
    }
    const { output } = await app.buildSearchIndex.wait(run.id)
    expect(checkSearch(output, 300, SEED)).toEqual([])
  })

  test('equal scores come by id', async () => {
    const lines = ['c', 'a', 'b'].map((id) => JSON.stringify({ id, title: '', body: 'same words' }))
    const app = start(await filesWith('docs.jsonl', chunksOf(lines.join('\n'))))
    const payload = { file: 'docs.jsonl', into: 'index', queries: ['same'] }
    const { output } = await app.buildSearchIndex.triggerAndWait(payload)
    expect(output.answers[0]?.hits.map((hit) => hit.id)).toEqual(['a', 'b', 'c'])
  })

  test('notices a shard that was changed behind its back', async () => {
    const files = await filesWith('docs.jsonl', generateDocuments(300, SEED))
    const forgetful: FileStore = {
      ...files,
      write: (to, bytes) => files.write(to, to === 'index/shard 1.jsonl' ? bytes.fill(32, 10, 20) : bytes),
    }
    const app = start(forgetful)
    const ended = app.buildSearchIndex.triggerAndWait({ file: 'docs.jsonl', into: 'index' })
    await expect(ended).rejects.toThrow('index/shard 1.jsonl is not what a step of this run wrote')
  })
})

async function importedOrders(files: FileStore, parts: number): Promise<unknown[]> {
  const orders: unknown[] = []
  for (let part = 1; part <= parts; part++) {
    const name = `out/orders-${String(part).padStart(5, '0')}.jsonl`
    const lines = toText(await files.read(name, 0, await files.size(name))).split('\n')
    orders.push(...lines.filter((line) => line !== '').map((line): unknown => JSON.parse(line)))
  }
  return orders
}

function goodOrders(rows: number) {
  return [...sampleOrders(rows, SEED)].flatMap(({ order, defect }) => (defect === null ? order : []))
}

async function* chunksOf(text: string) {
  yield text
}
