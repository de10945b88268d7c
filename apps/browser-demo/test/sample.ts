import type { ImportCsvOutput } from '@coji/durably-jobs'
import { checkImport, generateCsv, sampleOrders } from '@coji/durably-jobs/sample'
import type { FinishedRun } from './demo-page'

/** The smallest sample there is, in batches of 1,000 rows. */
export const ROWS = 20_000
export const PARTS = 20
const SEED = 20_261_118

/** The file that the demo makes for so many rows. */
export async function sampleCsv(rows: number): Promise<Buffer> {
  let text = ''
  for await (const chunk of generateCsv(rows, SEED)) text += chunk
  return Buffer.from(text)
}

/** What is wrong with an import of the sample, compared to the rows before they became a file. */
export function checkSampleImport({ status, error, output }: FinishedRun, rows = ROWS): string[] {
  if (status !== 'completed') return [`the run is ${status}: ${error}`]
  return checkImport(output as ImportCsvOutput, rows, SEED)
}

/** What is wrong with the files that an import wrote: each accepted order has to be there, once. */
export function checkWrittenOrders({ written }: FinishedRun): string[] {
  const accepted = [...sampleOrders(ROWS, SEED)].filter(({ defect }) => defect === null).map(({ order }) => order.order)
  const found = new Set(written)
  const missing = accepted.filter((order) => !found.has(order))
  return [
    ...(missing.length === 0 ? [] : [`${missing.length} orders are in no file: ${missing.slice(0, 5).join()} …`]),
    ...(written.length === accepted.length ? [] : [`${written.length} orders in files instead of ${accepted.length}`]),
  ]
}
