import type { Run } from '@coji/durably-core'
import type { z } from 'zod'
import { readRuns } from './list'
import type { Call } from './route'
import type { Server } from './server'
import type { waitListQuerySchema } from './wire'

/** `GET /waits`: which runs wait for somebody, and for which signals. */
export async function listWaits(call: Call<z.output<typeof waitListQuerySchema>>) {
  const { server, query } = call
  const { items, next } = await readRuns(call, { ...query, waitsFor: 'signal' })
  const waits: unknown[] = []
  // One after the other: a storage in this process would read the steps of all of them in one go.
  for (const run of items) {
    await server.durably.drafts.breathe()
    waits.push({ run: server.present.run(run), signals: await signalsFor(server, run) })
  }
  return { waits, next }
}

async function signalsFor({ durably }: Server, run: Run) {
  const steps = await durably.storage.getSteps(run.id)
  const waiting = steps.filter(({ kind, status }) => kind === 'signal' && status === 'waiting')
  return waiting.map(({ name, waitName, startedAt, dueAt }) => {
    return { stepName: name, signalName: waitName ?? name, since: startedAt, dueAt }
  })
}
