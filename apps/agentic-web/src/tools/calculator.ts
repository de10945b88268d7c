import { z } from 'zod'
import { defineTool } from './tool'

const input = z.object({ expression: z.string().max(500).describe('Such as (2 + 3) * 4.5') })

/** Sums, and nothing else: no names, no code. */
export const calculator = defineTool({
  name: 'calculator',
  description: 'Computes an arithmetic expression of numbers, + - * / % ^ and parentheses.',
  input,
  sideEffects: false,
  needsApproval: false,
  async execute({ expression }: z.output<typeof input>) {
    return { value: compute(expression) }
  },
})

const TOKEN = /\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|[-+*/%^()])/iy

export function compute(expression: string): number {
  const tokens = tokensOf(expression)
  let at = 0
  const next = () => tokens[at]
  const take = () => tokens[at++]

  function sum(): number {
    let value = product()
    while (next() === '+' || next() === '-') value = take() === '+' ? value + product() : value - product()
    return value
  }
  function product(): number {
    let value = negative()
    for (let sign = next(); sign === '*' || sign === '/' || sign === '%'; sign = next()) {
      take()
      const by = negative()
      value = sign === '*' ? value * by : sign === '/' ? value / by : value % by
    }
    return value
  }
  function negative(): number {
    if (next() !== '-') return power()
    take()
    return -negative()
  }
  function power(): number {
    const base = atom()
    if (next() !== '^') return base
    take()
    return base ** negative()
  }
  function atom(): number {
    const token = take()
    if (token === '(') {
      const value = sum()
      if (take() !== ')') throw new Error('A parenthesis is not closed.')
      return value
    }
    const value = Number(token)
    if (token === undefined || Number.isNaN(value)) throw new Error(`A number is missing in "${expression}".`)
    return value
  }

  const value = sum()
  if (at < tokens.length) throw new Error(`"${next()}" makes no sense there.`)
  if (!Number.isFinite(value)) throw new Error('That is no number.')
  return value
}

function tokensOf(expression: string): string[] {
  const tokens: string[] = []
  const text = expression.trimEnd()
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const from = TOKEN.lastIndex
    const token = TOKEN.exec(text)?.[1]
    if (token === undefined) throw new Error(`"${text.slice(from).trim()[0]}" makes no sense in a sum.`)
    tokens.push(token)
  }
  return tokens
}
