import type { z } from 'zod'
import { readRuns } from './list'
import type { Call } from './route'
import type { waitListQuerySchema } from './wire'

/** `GET /waits`: which runs wait for somebody, and for which signals. */
export async function listWaits(call: Call<z.output<typeof waitListQuerySchema>>) {
  const { server, query } = call
  const { items, next } = await readRuns(call, { ...query, waitsFor: 'signal' })
  const waits = items.map(async (run) => {
    const steps = await server.durably.storage.getSteps(run.id)
    const waiting = steps.filter(({ kind, status }) => kind === 'signal' && status === 'waiting')
    const signals = waiting.map(({ name, waitName, startedAt, dueAt }) => {
      return { stepName: name, signalName: waitName ?? name, since: startedAt, dueAt }
    })
    return { run: server.present.run(run), signals }
  })
  return { waits: await Promise.all(waits), next }
}
