import { z } from 'zod'

export const instant = z.string().meta({ format: 'date-time' })
export const count = z.int().nonnegative()
/** Whatever a job takes or gives. What was `undefined` is left out. */
export const value = z.unknown().optional()

export const progress = z.object({ current: z.number(), total: z.number().optional(), message: z.string().optional() })
export const waitingFor = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('retry') }),
  z.object({ kind: z.literal('steps'), steps: z.array(z.string()) }),
  z.object({ kind: z.literal('unpark'), reason: z.string() }),
])

/** Each is a part of a statement, and statements have an end. */
const MOST_LISTED = 100

/** In an address: one, or the same name again for each. */
export const oneOrMany = <T extends z.ZodType>(one: T, most = MOST_LISTED) => z.union([one, z.array(one).max(most)])
export const flag = z.enum(['true', 'false']).transform((text) => text === 'true')
export const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(Number)

export const text = z.string().min(1).max(512)

export const labelFilter = z
  .record(text, z.string().max(512))
  .refine((labels) => Object.keys(labels).length <= MOST_LISTED, { message: `at most ${MOST_LISTED} labels` })
  .meta({ maxProperties: MOST_LISTED })
