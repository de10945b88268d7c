import { defineJob } from '@coji/durably-core'
import { z } from 'zod'
import { createDistinctCounter } from './distinct'
import type { FileSource, FileStore } from './files'
import { ORDER_COLUMNS, readOrder } from './order'
import { mergeTotals, noOrders, totalOf, type OrderTotals } from './order-totals'
import { readBatch } from './read-batch'
import { splitCsv } from './split-csv'
import { toBytes } from './text'

const count = z.number().int().nonnegative()

export const importCsvInput = z.object({
  /** A reference to the CSV, not its content. */
  file: z.string().min(1),
  /** Where the accepted orders go: one file of JSON lines a batch. */
  into: z.string().min(1),
  batchRows: z.number().int().min(1).max(50_000).default(5_000),
})

export const importCsvOutput = z.object({
  rows: count,
  accepted: count,
  /** How many rows were refused, by reason. */
  rejected: z.record(z.string(), count),
  byCategory: z.record(z.string(), z.object({ orders: count, units: count, cents: count })),
  firstDate: z.string().nullable(),
  lastDate: z.string().nullable(),
  /** An estimate, 2.3 % standard error. */
  distinctCustomers: count,
  parts: count,
})

export type ImportCsvInput = z.output<typeof importCsvInput>
export type ImportCsvOutput = z.output<typeof importCsvOutput>

/**
 * The job `import-csv`: reads a CSV of orders in batches, one step each, refuses bad rows with a reason, writes the
 * good ones and adds everything up. A batch that is run again writes the same file again.
 */
export function createImportCsv({ files }: { readonly files: FileStore }) {
  return defineJob(
    { name: 'import-csv', input: importCsvInput, output: importCsvOutput },
    async (ctx, { file, into, batchRows }) => {
      const { size, offset: start } = await ctx.run('open', () => openCsv(files, file))
      let totals = noOrders()
      let offset = start
      for (let part = 1; offset < size; part++) {
        const first = totals.rows + 1
        const step = { files, file, size, offset, limit: batchRows, part: partName(into, part) }
        const batch = await ctx.run(`rows ${first}-${first + batchRows - 1}`, () => importBatch(step))
        totals = mergeTotals(totals, batch.totals)
        offset = batch.nextOffset
        ctx.progress(offset, size, `${totals.rows.toLocaleString('en')} rows`)
      }
      return toOutput(totals, batchRows)
    },
  )
}

/** Where the first row begins, once the header is the one expected. */
async function openCsv(source: FileSource, file: string): Promise<{ size: number; offset: number }> {
  const size = await source.size(file)
  const header = await readBatch({ source, file, size, offset: 0, limit: 1, split: splitCsv })
  // Trimming takes a byte order mark away, too.
  const columns = header.items[0]?.map((name) => name.trim()) ?? []
  if (columns.join() !== ORDER_COLUMNS.join()) {
    throw new Error(`${file} has the columns "${columns.join()}", expected "${ORDER_COLUMNS.join()}".`)
  }
  return { size, offset: header.nextOffset }
}

interface ImportBatchParams {
  readonly files: FileStore
  readonly file: string
  readonly size: number
  readonly offset: number
  readonly limit: number
  readonly part: string
}

async function importBatch(params: ImportBatchParams): Promise<{ nextOffset: number; totals: OrderTotals }> {
  const { items, nextOffset } = await readBatch({ source: params.files, split: splitCsv, ...params })
  const rows = items.map(readOrder)
  const accepted = rows.filter((row) => typeof row !== 'string')
  await params.files.write(params.part, toBytes(accepted.map((order) => `${JSON.stringify(order)}\n`).join('')))
  return { nextOffset, totals: totalOf(rows) }
}

function partName(into: string, part: number): string {
  return `${into}/orders-${String(part).padStart(5, '0')}.jsonl`
}

function toOutput({ customers, ...totals }: OrderTotals, batchRows: number): ImportCsvOutput {
  const distinctCustomers = createDistinctCounter(customers).estimate()
  return { ...totals, distinctCustomers, parts: Math.ceil(totals.rows / batchRows) }
}
