import { describe, expect, it } from 'vitest'
import { compute } from './arithmetic'

describe('an expression', () => {
  it.for([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3 - -4', 13],
    ['2 ^ 3 ^ 2', 512],
    ['-2 ** 2', -4],
    ['2 ^ -1', 0.5],
    ['10 % 4 / 2', 1],
    ['.5 + 1e3', 1000.5],
    ['max(1, sqrt(16), min(9, 2)) + round(pi)', 7],
    ['ln(e)', 1],
  ] as const)('%s is %s', ([expression, value]) => {
    expect(compute(expression)).toBe(value)
  })

  it.for([
    ['1 +', 'Expected a number, but it ends'],
    ['1 2', 'Expected the end, but there is 2 at character 3'],
    ['(1', 'Expected ), but it ends'],
    ['1 / 0', 'divides by zero'],
    ['10 ^ 400', 'no finite value'],
    ['process.exit()', 'Nothing can be made of ".exit()"'],
    ['constructor', 'There is no constructor'],
    ['toString(1)', 'There is no toString'],
    ['sqrt(1, 2)', 'takes one value'],
    ['', 'it ends'],
    ['('.repeat(900), 'nested too deeply'],
  ] as const)('%s says what is wrong', ([expression, message]) => {
    expect(() => compute(expression)).toThrow(message)
  })
})
