/** What `test/mounted-handler.ts` needs to be behind an address, with nothing of Node in it. */
import { createDurably } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { createDurablyHandler, type DurablyHandler } from '@coji/durably-server'
import { z } from 'zod'

export async function openHandler(): Promise<DurablyHandler> {
  const durably = createDurably({ storage: createMemoryStorage(), logger: null })
  durably.use(withLogPersistence())
  durably.defineJob({ name: 'ask', input: z.unknown() }, (ctx) => ctx.waitFor('answer', { schema: z.unknown() }))
  await durably.migrate()
  durably.start()
  return createDurablyHandler(durably, { allowAnonymous: true, basePath: '/api' })
}
