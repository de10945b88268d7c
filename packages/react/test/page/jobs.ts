import { createDurably, defineJob, type Run } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { z } from 'zod'

/** Bodies wait at the gates that were closed, until they are opened. */
const gates = new Map<string, { readonly opened: Promise<void>; readonly open: () => void }>()

export function closeGate(name: string): void {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  gates.set(name, { opened, open })
}

export function openGate(name: string): void {
  gates.get(name)?.open()
}

export function openGates(): void {
  for (const { open } of gates.values()) open()
}

export const greet = defineJob(
  { name: 'greet', input: z.object({ name: z.string() }), output: z.object({ words: z.number() }) },
  async (ctx, { name }) => {
    ctx.log.info(`greets ${name}`)
    await ctx.run('look up', async () => {
      await gates.get('look up')?.opened
      return name.toUpperCase()
    })
    ctx.progress(1, 2, 'greeting')
    return ctx.stream('greeting', async (emit) => {
      await emit('Hello ')
      await gates.get('greeting')?.opened
      await emit(name)
      return { words: 2 }
    })
  },
)

export function createInstance() {
  const durably = createDurably({ storage: createMemoryStorage(), pollingInterval: 50 })
  durably.use(withLogPersistence())
  durably.register({ greet })
  durably.start()
  return durably
}

/** As a server has read it. */
export const READ_ON_SERVER = {
  id: '01JQZ5K3V9N8M7P6R5T4S3W2X1',
  jobName: 'greet',
  status: 'running',
  progress: { current: 1, total: 2 },
  output: null,
  error: null,
  finishedAt: null,
} as Run<{ readonly words: number }>
