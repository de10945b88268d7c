import { CATEGORIES, ORDER_COLUMNS, type Order, type Rejection, REJECTIONS } from '../order'
import { createRandom, type Random } from './random'

/** A row before it becomes text: what it should be read as, and the cells that say so. */
export interface SampleRow {
  readonly order: Order
  /** Set when the cells were spoilt on purpose. */
  readonly defect: Rejection | null
  readonly cells: readonly string[]
}

const CHUNK_ROWS = 1_000
const DEFECT_RATE = 0.01
const FIRST_DAY = Date.UTC(2024, 0, 1)
const DAYS = 731
const NOTES = [
  '',
  '',
  '',
  'gift wrap',
  'leave at the door, please',
  'says "fragile" on the box',
  'two lines:\nring twice',
  'windows lines:\r\n"quoted, too"',
  '贈り物、包装あり',
  'déjà vu 🎁',
] as const

/** The rows of a sample file, one after the other; nothing is kept. */
export function* sampleOrders(rows: number, seed: number): Generator<SampleRow> {
  const random = createRandom(seed)
  for (let row = 1; row <= rows; row++) yield sampleRow(row, random)
}

/** A CSV file of so many orders, in chunks of text. About 1 % of the rows are spoilt, in every way there is. */
export async function* generateCsv(rows: number, seed: number): AsyncGenerator<string> {
  let chunk = `${ORDER_COLUMNS.join(',')}\r\n`
  let gathered = 0
  for (const { cells } of sampleOrders(rows, seed)) {
    chunk += `${cells.map(toCell).join(',')}\r\n`
    gathered += 1
    if (gathered % CHUNK_ROWS > 0) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}

function sampleRow(row: number, random: Random): SampleRow {
  const order: Order = {
    order: `A-${String(row).padStart(7, '0')}`,
    orderedOn: new Date(FIRST_DAY + random.below(DAYS) * 86_400_000).toISOString().slice(0, 10),
    customer: `C-${random.below(20_000)}`,
    category: random.pick(CATEGORIES),
    quantity: 1 + random.below(9),
    unitPriceCents: 99 + random.below(random.next() < 0.1 ? 250_000 : 9_000),
    note: random.pick(NOTES),
  }
  const defect = random.next() < DEFECT_RATE ? random.pick(REJECTIONS) : null
  const cells = [
    order.order,
    order.orderedOn,
    order.customer,
    random.next() < 0.2 ? order.category.toUpperCase() : order.category,
    String(order.quantity),
    toPrice(order.unitPriceCents),
    order.note,
  ]
  return { order, defect, cells: defect === null ? cells : SPOIL[defect](cells) }
}

const SPOIL: Record<Rejection, (cells: readonly string[]) => readonly string[]> = {
  columns: (cells) => cells.slice(0, -2),
  date: (cells) => replaced(cells, 1, '2025-02-30'),
  customer: (cells) => replaced(cells, 2, ' '),
  category: (cells) => replaced(cells, 3, 'weapons'),
  quantity: (cells) => replaced(cells, 4, '-1'),
  price: (cells) => replaced(cells, 5, '12,34.5'),
}

function toPrice(cents: number): string {
  const whole = String(Math.floor(cents / 100)).replace(/\B(?=(\d{3})+$)/g, ',')
  return `${whole}.${String(cents % 100).padStart(2, '0')}`
}

function toCell(value: string): string {
  return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value
}

function replaced(cells: readonly string[], column: number, value: string): readonly string[] {
  return cells.map((cell, index) => (index === column ? value : cell))
}
