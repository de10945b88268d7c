import { describe, expect, test } from 'vitest'
import { createDistinctCounter } from '../src/distinct'
import { readOrder, REJECTIONS } from '../src/order'
import { mergeTotals, noOrders, totalOf } from '../src/order-totals'
import { generateCsv, sampleOrders } from '../src/sample'
import { splitCsv } from '../src/split-csv'

const good = ['A-1', '2024-02-29', 'C-1', 'Books', '3', '1,234.5', 'note']
const with_ = (column: number, value: string) => good.map((cell, index) => (index === column ? value : cell))

describe('readOrder', () => {
  test('reads an order', () => {
    expect(readOrder(good)).toEqual({
      order: 'A-1',
      orderedOn: '2024-02-29',
      customer: 'C-1',
      category: 'books',
      quantity: 3,
      unitPriceCents: 123_450,
      note: 'note',
    })
  })

  const refused: readonly [string, readonly string[]][] = [
    ['columns', good.slice(1)],
    ['columns', [...good, 'more']],
    ['date', with_(1, '2025-02-29')],
    ['date', with_(1, '2025-13-01')],
    ['date', with_(1, '1 May 2025')],
    ['customer', with_(2, '  ')],
    ['category', with_(3, 'cars')],
    ['quantity', with_(4, '0')],
    ['quantity', with_(4, '1.5')],
    ['price', with_(5, '-1.00')],
    ['price', with_(5, '12,34.5')],
    ['price', with_(5, '1.005')],
    ['price', with_(5, '')],
  ]
  for (const [reason, cells] of refused) {
    test(`${reason}: ${cells.join('|')}`, () => expect(readOrder(cells)).toBe(reason))
  }
})

describe('sample orders', () => {
  test('are read back from CSV as they were made, defects included', async () => {
    let text = ''
    for await (const chunk of generateCsv(20_000, 7)) text += chunk
    const [header, ...records] = splitCsv(text, { limit: 30_000, isLast: true }).items
    expect(header?.join()).toBe('order,ordered_on,customer,category,quantity,unit_price,note')
    expect(records.map(readOrder)).toEqual([...sampleOrders(20_000, 7)].map(({ order, defect }) => defect ?? order))
  })

  test('are spoilt in every way, by about 1 %', () => {
    const defects = [...sampleOrders(20_000, 7)].flatMap(({ defect }) => defect ?? [])
    expect([...new Set(defects)].sort()).toEqual([...REJECTIONS].sort())
    expect(defects.length / 20_000).toBeCloseTo(0.01, 2)
  })

  test('depend on the seed alone', () => {
    expect([...sampleOrders(100, 1)]).toEqual([...sampleOrders(100, 1)])
    expect([...sampleOrders(100, 1)]).not.toEqual([...sampleOrders(100, 2)])
  })
})

describe('totals', () => {
  const rows = [...sampleOrders(3_000, 3)].map(({ order, defect }) => defect ?? order)

  test('of parts merge into the total of the whole', () => {
    const parts = [rows.slice(0, 1), rows.slice(1, 2_000), [], rows.slice(2_000)]
    expect(parts.map(totalOf).reduce(mergeTotals, noOrders())).toEqual(totalOf(rows))
  })

  test('of nothing', () => {
    expect(totalOf([])).toEqual(noOrders())
  })
})

describe('distinct counter', () => {
  for (const count of [0, 1, 10, 1_000, 5_000, 20_000, 300_000]) {
    test(`estimates ${count} within 7 %`, () => {
      const counter = createDistinctCounter()
      for (let value = 0; value < count; value++)
        for (let twice = 0; twice < 2; twice++) counter.add(`customer ${value}`)
      expect(Math.abs(counter.estimate() - count)).toBeLessThanOrEqual(count * 0.07)
    })
  }

  test('refuses a state of another size', () => {
    expect(() => createDistinctCounter('000')).toThrow('2048 registers')
  })
})
