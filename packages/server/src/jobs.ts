import type { KnownJob } from '@coji/durably-core'
import { z } from 'zod'
import { isOwnJob } from './bulk'
import type { Call } from './route'

/** `GET /jobs` */
export async function listJobs({ server }: Call) {
  const jobs = server.durably.jobs().filter(({ name }) => !isOwnJob(name))
  return { jobs: jobs.map(({ input, ...job }) => ({ ...job, input: jsonSchemaOf(input) })) }
}

/** Only a schema of Zod can say so, and not all of them. */
function jsonSchemaOf(input: KnownJob['input']): unknown {
  if (!(input instanceof z.ZodType)) return null
  try {
    const { $schema: _, ...schema } = z.toJSONSchema(input, { io: 'input' })
    return schema
  } catch {
    return null
  }
}
