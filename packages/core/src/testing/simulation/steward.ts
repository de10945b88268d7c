import type { RunCommand, Storage } from '../../port'
import type { Model } from './model'
import type { Wire } from './wire'
import type { World } from './world'

export interface StewardParams {
  readonly world: World
  readonly wire: Wire
  readonly inner: Storage
  readonly model: Model
}

const EVENTS = { events: [{ type: 'run:park', payload: '{}' }] } as const

/** Parks runs and takes them back, at the storage itself: no call of the engine does it yet. */
export function createSteward({ world, wire, inner, model }: StewardParams) {
  const { random } = world

  async function obey(command: RunCommand): Promise<void> {
    await wire.perform({
      name: `${command.kind} ${command.runId}`,
      stakes: () => [],
      perform: () => inner.command(command),
      check: (answer) => model.commanded(command, answer),
    })
  }

  const orders = {
    park: (runId: string) => obey({ kind: 'park', runId, reason: 'parked', ...EVENTS }),
    unpark: (runId: string) => obey({ kind: 'unpark', runId, ...EVENTS }),
    failParked: (runId: string) =>
      obey({ kind: 'failParked', runId, error: 'given up', detail: { name: 'Error' }, ...EVENTS }),
  }

  const parked = () => [...model.runs.values()].filter((run) => run.waitingFor === 'unpark')

  return {
    async act(): Promise<void> {
      const kind = random.weighted({ park: 3, unpark: 2, failParked: 1 })
      // Also those that are in no state for it.
      const among = kind === 'park' || random.chance(0.5) ? [...model.runs.values()] : parked()
      const run = random.pickAny(among)
      if (run !== undefined) await orders[kind](run.wanted.id)
    },
    async unparkAll(): Promise<void> {
      for (const run of parked()) await orders.unpark(run.wanted.id)
    },
  }
}
