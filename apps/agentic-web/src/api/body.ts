import type { Context } from 'hono'
import type { z } from 'zod'
import { invalid, RequestError } from './problem'

/** The body of a request, checked. Only JSON: forms of other sites can send anything else without being asked. */
export async function readBody<TSchema extends z.ZodType>(
  context: Context,
  schema: TSchema,
): Promise<z.output<TSchema>> {
  const type = context.req.header('content-type') ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new RequestError('INVALID_REQUEST', 'The body must be JSON, with content-type application/json.')
  }
  const given = await context.req.json().catch(() => {
    throw new RequestError('INVALID_REQUEST', 'The body is no JSON.')
  })
  return check(schema, given, 'body')
}

export function readQuery<TSchema extends z.ZodType>(context: Context, schema: TSchema): z.output<TSchema> {
  return check(schema, context.req.query(), 'query')
}

function check<TSchema extends z.ZodType>(schema: TSchema, given: unknown, what: string): z.output<TSchema> {
  const { success, data, error } = schema.safeParse(given)
  if (success) return data
  throw invalid(what, error)
}
