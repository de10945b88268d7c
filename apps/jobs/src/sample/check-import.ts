import type { ImportCsvOutput } from '../import-csv'
import { sampleOrders } from './orders'

/** How far the estimate of distinct customers may be off: three standard errors. */
const DISTINCT_TOLERANCE = 0.07

/**
 * What is wrong with the result of `import-csv` for a sample file; nothing, when it is right. Here the same numbers
 * come from the rows before they became text: no CSV, no batches, no merging, customers counted one by one.
 */
export function checkImport(output: ImportCsvOutput, rows: number, seed: number): string[] {
  const rejected = new Map<string, number>()
  const customers = new Set<string>()
  const dates = new Set<string>()
  const categories = new Map<string, bigint[]>()
  for (const { order, defect } of sampleOrders(rows, seed)) {
    if (defect !== null) {
      rejected.set(defect, (rejected.get(defect) ?? 0) + 1)
      continue
    }
    customers.add(order.customer)
    dates.add(order.orderedOn)
    const [orders = 0n, units = 0n, cents = 0n] = categories.get(order.category) ?? []
    const quantity = BigInt(order.quantity)
    categories.set(order.category, [orders + 1n, units + quantity, cents + quantity * BigInt(order.unitPriceCents)])
  }
  const bad = [...rejected.values()].reduce((sum, count) => sum + count, 0)
  const days = [...dates].sort()
  const differs = (what: string, got: unknown, expected: unknown): string[] =>
    String(got) === String(expected) ? [] : [`${what}: ${String(got)} instead of ${String(expected)}`]
  return [
    ...differs('rows', output.rows, rows),
    ...differs('accepted', output.accepted, rows - bad),
    ...differs('rejected', sorted(output.rejected), sorted(Object.fromEntries(rejected))),
    ...differs('categories', Object.keys(output.byCategory).sort(), [...categories.keys()].sort()),
    ...[...categories].flatMap(([name, expected]) => {
      const got = output.byCategory[name]
      return differs(name, [got?.orders, got?.units, got?.cents], expected)
    }),
    ...differs('first date', output.firstDate, days.at(0) ?? null),
    ...differs('last date', output.lastDate, days.at(-1) ?? null),
    ...(Math.abs(output.distinctCustomers - customers.size) <= customers.size * DISTINCT_TOLERANCE
      ? []
      : [`distinct customers: ${output.distinctCustomers} is too far from ${customers.size}`]),
  ]
}

function sorted(counts: Readonly<Record<string, number>>): string {
  return JSON.stringify(Object.entries(counts).sort())
}
