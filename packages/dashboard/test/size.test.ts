import { gzipSync } from 'node:zlib'
import { expect, inject, test } from 'vitest'

const BUDGET_BYTES = 120_000

test('the page with all its files is small', () => {
  const files = Object.values(inject('assets'))
  const bytes = files.reduce((sum, { text }) => sum + gzipSync(text, { level: 9 }).length, 0)
  expect(bytes).toBeLessThan(BUDGET_BYTES)
  expect(bytes).toBeGreaterThan(BUDGET_BYTES / 2)
})
