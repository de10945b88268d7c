import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import type { BarKind } from '../step-bars'
import { Row } from './step-row'

function textOf(kind: BarKind): string {
  const row = { name: 'step', bars: [{ kind, from: 1000, to: 1300, execution: 1 }] }
  const html = renderToStaticMarkup(createElement(Row, { row, points: '0 1', look: '' }))
  return html
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}

test('a step that was cut off has no duration: nobody knows when its worker died', () => {
  expect(textOf('cut')).toBe('step cut off')
  expect(textOf('failed')).toBe('step failed 300 ms')
  expect(textOf('completed')).toBe('step completed 300 ms')
})
