import { z } from 'zod'
import { compute } from './arithmetic'
import { defineTool } from './tool'

export const calculator = defineTool({
  name: 'calculator',
  description:
    'Calculates: + - * / % ^, parentheses, pi, e, and sqrt, abs, round, floor, ceil, ln, log10, log2, exp, sin, cos, ' +
    'tan (radians), min, max. For example (1 + 2) * sqrt(16).',
  input: z.strictObject({ expression: z.string().min(1).max(1000) }),
  sideEffects: false,
  needsApproval: false,
  execute: async ({ expression }) => ({ value: compute(expression) }),
})
