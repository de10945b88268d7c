import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StoredEvent } from '@coji/durably-core'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../test/report'
import { scaled } from '../../../test/scale'
import { randomFrom } from '../../cluster/test/simulation/random'
import { createDurablyClient, type RunChange } from '../src/client'
import { intBelow, SEED } from './chance'
import { described } from './described'
import { newFolder, openWorker } from './file-worker'
import { startServer } from './killable-server'

const KILLS = scaled({ quick: 4, full: 40 })
/** So many steps may be done that the client has not heard of. */
const AHEAD = 3
const STEPS = KILLS * 5

const PROGRAM = fileURLToPath(new URL('./programs/serve-file.ts', import.meta.url))

/** Executes steps, a few ahead of who hears of them. */
async function startSteps(file: string) {
  const durably = await openWorker(file)
  const waiting: { readonly step: number; readonly go: () => void }[] = []
  let heard = 0
  const look = () => {
    while ((waiting[0]?.step ?? Number.POSITIVE_INFINITY) <= heard + AHEAD) waiting.shift()?.go()
  }
  durably.defineJob({ name: 'steps', input: z.unknown() }, async (ctx) => {
    for (let step = 0; step < STEPS; step++) {
      await ctx.run(`step ${step}`, async () => {
        await new Promise<void>((go) => {
          waiting.push({ step, go })
          look()
        })
      })
    }
  })
  durably.start()
  return {
    durably,
    hear({ type }: StoredEvent) {
      if (type === 'step:complete') heard += 1
      look()
    },
  }
}

/** The steps after which the server is killed. */
function killsOf(random: () => number): ReadonlySet<string> {
  const steps = new Set<string>()
  while (steps.size < KILLS) steps.add(`step ${intBelow(random, STEPS)}`)
  return steps
}

it('a client goes on with no gap and no double when the process of its server is killed and started again', async () => {
  reportSuite({ suite: 'servers that are killed', kills: KILLS, seed: SEED })
  const file = join(newFolder(), 'app.db')
  const { durably, hear } = await startSteps(file)
  const server = await startServer(PROGRAM, { file })
  onTestFinished(() => server.close())
  const client = createDurablyClient({ url: server.url, fetch: described(fetch) })
  const changes: RunChange[] = []
  onTestFinished(client.watchRuns((change) => changes.push(change)))
  const { id } = await client.trigger('steps', 1)
  const kills = killsOf(randomFrom(SEED))
  const seen: StoredEvent[] = []
  for await (const event of client.subscribe(id)) {
    seen.push(event)
    const isKill = event.type === 'step:complete' && kills.has(event.stepName)
    if (isKill) await server.kill()
    hear(event)
    if (isKill) await server.startAgain()
  }
  expect(seen, `seed ${SEED}`).toEqual(await durably.getEvents(id))
  expect(seen.filter(({ type }) => type === 'step:complete')).toHaveLength(STEPS)
  // What it missed meanwhile nobody knows.
  await expect.poll(() => changes).toContainEqual({ runId: null, isUrgent: false })
})
