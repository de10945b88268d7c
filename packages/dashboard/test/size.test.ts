import { gzipSync } from 'node:zlib'
import { expect, inject, test } from 'vitest'

const BUDGET_BYTES = 120_000

const files = () => Object.entries(inject('assets'))

test('the page with all that it loads is small', () => {
  const loaded = files().filter(([path]) => !path.endsWith('.txt'))
  const bytes = loaded.reduce((sum, [, { text }]) => sum + gzipSync(text, { level: 9 }).length, 0)
  expect(bytes).toBeLessThan(BUDGET_BYTES)
  expect(bytes).toBeGreaterThan(BUDGET_BYTES / 2)
})

test('the page comes with the licences of what it contains', () => {
  const [, licences] = files().find(([path]) => path.endsWith('THIRD-PARTY.txt')) ?? []
  for (const name of ['react-dom', '@tanstack/virtual-core', 'wouter', 'eventsource-parser', 'regexparam']) {
    expect(licences?.text).toMatch(new RegExp(`^${name} .*\\(`, 'm'))
  }
  const [, script] = files().find(([path]) => path.endsWith('.js')) ?? []
  expect(script?.text.slice(0, 200)).toContain('THIRD-PARTY.txt')
})
