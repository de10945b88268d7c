import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import type { Gap } from '../step-bars'
import { Legend } from './steps-overview'

/** The entries of the legend. */
function legendOf(gaps: readonly Gap[]): string[] {
  const executions = Array.from({ length: gaps.length + 1 }, (_, index) => index)
  const html = renderToStaticMarkup(createElement(Legend, { gaps, executions }))
  return html
    .split('<li>')
    .map((entry) => entry.replace(/<[^>]*>/g, '').trim())
    .filter((entry) => entry !== '')
}

test('each reason why nobody worked is told once, however often it was so', () => {
  const crashes = Array.from({ length: 13 }, (_, index): Gap => ({ why: 'crash', from: index, to: index + 100 }))
  expect(legendOf([])).toEqual([])
  expect(legendOf(crashes.slice(0, 1))).toEqual(['2 executions', 'no sign of a worker for 100 ms'])
  expect(legendOf([...crashes, { why: 'retry', from: 0, to: 5000 }])).toEqual([
    '15 executions',
    'no sign of a worker 13 times for 1.3 s in all',
    'before a retry for 5 s',
  ])
})
