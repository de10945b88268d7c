/** The columns of the CSV, in this order. */
export const ORDER_COLUMNS = ['order', 'ordered_on', 'customer', 'category', 'quantity', 'unit_price', 'note'] as const

export const CATEGORIES = ['books', 'games', 'garden', 'kitchen', 'music', 'office', 'sport', 'toys'] as const

export type Category = (typeof CATEGORIES)[number]

/** Why a row is not taken. */
export const REJECTIONS = ['columns', 'date', 'customer', 'category', 'quantity', 'price'] as const

export type Rejection = (typeof REJECTIONS)[number]

export interface Order {
  readonly order: string
  readonly orderedOn: string
  readonly customer: string
  readonly category: Category
  readonly quantity: number
  readonly unitPriceCents: number
  readonly note: string
}

/** One record of the file as an order, or the first reason why it is none. */
export function readOrder(fields: readonly string[]): Order | Rejection {
  if (fields.length !== ORDER_COLUMNS.length) return 'columns'
  const [order = '', date = '', customer = '', category = '', quantity = '', price = '', note = ''] = fields
  const orderedOn = date.trim()
  if (!isDate(orderedOn)) return 'date'
  if (customer.trim() === '') return 'customer'
  const knownCategory = CATEGORIES.find((name) => name === category.trim().toLowerCase())
  if (knownCategory === undefined) return 'category'
  if (!/^[1-9]\d{0,3}$/.test(quantity.trim())) return 'quantity'
  const unitPriceCents = toCents(price.trim())
  if (unitPriceCents === null) return 'price'
  return {
    order: order.trim(),
    orderedOn,
    customer: customer.trim(),
    category: knownCategory,
    quantity: Number(quantity),
    unitPriceCents,
    note,
  }
}

/** A day that exists, as `2025-02-28`. */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}

/** `1,234.50` and `1234.5` are 123450 cents; money is never a binary fraction. */
function toCents(text: string): number | null {
  const match = /^(\d{1,3}(?:,\d{3})*|\d{1,9})(?:\.(\d{1,2}))?$/.exec(text)
  if (match === null) return null
  const whole = (match[1] ?? '').replaceAll(',', '')
  return Number(whole) * 100 + Number((match[2] ?? '').padEnd(2, '0'))
}
