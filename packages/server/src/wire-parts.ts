import { z } from 'zod'

export const instant = z.string().meta({ format: 'date-time' })
export const count = z.int().nonnegative()
/** Whatever a job takes or gives. What was `undefined` is left out. */
export const value = z.unknown().optional()

/** In an address: one, or the same name again for each. */
export const oneOrMany = <T extends z.ZodType>(one: T) => z.union([one, z.array(one)])
export const flag = z.enum(['true', 'false']).transform((text) => text === 'true')
export const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(Number)

export const text = z.string().min(1).max(512)
