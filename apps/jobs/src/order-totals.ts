import { createDistinctCounter } from './distinct'
import type { Order, Rejection } from './order'

export interface CategoryTotal {
  readonly orders: number
  readonly units: number
  readonly cents: number
}

/** What is known of a part of the file. Plain data: the result of a step, and of all steps merged. */
export interface OrderTotals {
  readonly rows: number
  readonly accepted: number
  readonly rejected: Readonly<Record<string, number>>
  readonly byCategory: Readonly<Record<string, CategoryTotal>>
  readonly firstDate: string | null
  readonly lastDate: string | null
  /** The state of a distinct counter. */
  readonly customers: string
}

export function noOrders(): OrderTotals {
  const customers = createDistinctCounter().state()
  return { rows: 0, accepted: 0, rejected: {}, byCategory: {}, firstDate: null, lastDate: null, customers }
}

export function totalOf(rows: readonly (Order | Rejection)[]): OrderTotals {
  const rejected: Record<string, number> = {}
  const byCategory: Record<string, CategoryTotal> = {}
  const customers = createDistinctCounter()
  let accepted = 0
  let firstDate: string | null = null
  let lastDate: string | null = null
  for (const row of rows) {
    if (typeof row === 'string') {
      rejected[row] = (rejected[row] ?? 0) + 1
      continue
    }
    accepted += 1
    const cents = row.quantity * row.unitPriceCents
    byCategory[row.category] = plus(byCategory[row.category], { orders: 1, units: row.quantity, cents })
    customers.add(row.customer)
    firstDate = earlier(firstDate, row.orderedOn)
    lastDate = later(lastDate, row.orderedOn)
  }
  return { rows: rows.length, accepted, rejected, byCategory, firstDate, lastDate, customers: customers.state() }
}

export function mergeTotals(a: OrderTotals, b: OrderTotals): OrderTotals {
  const rejected = { ...a.rejected }
  for (const [reason, count] of Object.entries(b.rejected)) rejected[reason] = (rejected[reason] ?? 0) + count
  const byCategory = { ...a.byCategory }
  for (const [category, total] of Object.entries(b.byCategory)) byCategory[category] = plus(byCategory[category], total)
  const customers = createDistinctCounter(a.customers)
  customers.merge(b.customers)
  return {
    rows: a.rows + b.rows,
    accepted: a.accepted + b.accepted,
    rejected,
    byCategory,
    firstDate: earlier(a.firstDate, b.firstDate),
    lastDate: later(a.lastDate, b.lastDate),
    customers: customers.state(),
  }
}

function plus(a: CategoryTotal | undefined, b: CategoryTotal): CategoryTotal {
  if (a === undefined) return b
  return { orders: a.orders + b.orders, units: a.units + b.units, cents: a.cents + b.cents }
}

function earlier(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return a < b ? a : b
}

function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return a > b ? a : b
}
