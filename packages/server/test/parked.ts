import { createDurably, type Durably, type JobContext, type Storage, type TriggerOptions } from '@coji/durably-core'
import { withLogPersistence } from '@coji/durably-plugins'
import { z } from 'zod'

const NAME = 'changes'

async function before(ctx: JobContext): Promise<void> {
  await ctx.run('x', () => 1)
  await ctx.waitFor('deploy')
}

const after = (ctx: JobContext) => ctx.sleep('x', 0)

/** Never closed: the storage is that of others. */
const instances = new WeakMap<Storage, { readonly before: Durably; readonly after: Durably }>()

function openOn(storage: Storage, body: (ctx: JobContext) => unknown): Durably {
  const durably = createDurably({ storage, logger: null }).use(withLogPersistence())
  durably.defineJob({ name: NAME, input: z.unknown() }, body)
  return durably
}

/** A run whose code has changed under it, as by a deploy: it waits for somebody to let it go on. */
export async function parkRun(
  { storage }: Pick<Durably, 'storage'>,
  options: TriggerOptions = {},
  payload: unknown = 1,
): Promise<string> {
  const known = instances.get(storage) ?? { before: openOn(storage, before), after: openOn(storage, after) }
  instances.set(storage, known)
  const { id } = await known.before.trigger(NAME, payload, options)
  await known.before.runUntilIdle()
  await known.before.signal(id, 'deploy')
  await known.after.runUntilIdle()
  return id
}

/** The code is again as it was: such a run can go on to its end. */
export function mend(durably: Durably): void {
  durably.defineJob({ name: NAME, input: z.unknown() }, before)
}
