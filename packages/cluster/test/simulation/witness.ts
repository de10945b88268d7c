import type { MemoryStorage } from '@coji/durably-core/memory'
import type { NewRun } from '@coji/durably-core/storage'

/** What was written, as the storage itself has seen it: runs may be gone when it is judged. */
export interface Witness {
  /** Of schedules, by the schedule: the instants of all runs that were ever created. */
  readonly instants: Map<string, string[]>
  /** Payloads of the runs of messages, by the job. */
  readonly payloads: Map<string, string[]>
}

/** Which guard is switched off: runs are created even where it refuses. */
export type Mutant = 'fire' | 'deliver' | 'release'

/** Notes what the cluster group of a storage creates. */
export function watched(storage: MemoryStorage, mutant: Mutant | null): { storage: MemoryStorage; witness: Witness } {
  const witness: Witness = { instants: new Map(), payloads: new Map() }
  const { schedules, inbox } = storage.cluster
  const note = (runs: readonly NewRun[], created: readonly string[]) => {
    for (const { id, scheduleId, scheduledFor, jobName, payload } of runs) {
      if (!created.includes(id)) continue
      if (scheduleId !== null) add(witness.instants, scheduleId, scheduledFor ?? '')
      else add(witness.payloads, jobName, payload ?? '')
    }
  }
  /** Without what would stop a second run beside the guard. */
  const anyway = async (runs: readonly NewRun[]) => {
    const bare = runs.map((run) => ({ ...run, idempotencyKey: null, scheduledFor: null }))
    await storage.enqueue(bare)
    note(
      runs,
      runs.map(({ id }) => id),
    )
  }
  const settle = async (of: Mutant, runs: readonly NewRun[], answer: Answer) => {
    if (mutant === of && !answer.kept) await anyway(runs)
    else note(runs, answer.created)
  }
  const cluster: MemoryStorage['cluster'] = {
    ...storage.cluster,
    schedules: {
      ...schedules,
      async fire(lead, firings) {
        const answers = await schedules.fire(lead, firings)
        for (const [index, { runs }] of firings.entries()) await settle('fire', runs, answers[index] as Answer)
        return answers
      },
    },
    inbox: {
      ...inbox,
      async deliver(lead, deliveries) {
        const answers = await inbox.deliver(lead, deliveries)
        for (const [index, { runs }] of deliveries.entries()) await settle('deliver', runs, answers[index] as Answer)
        return answers
      },
      async release(lead, releases) {
        const answers = await inbox.release(lead, releases)
        for (const [index, { run }] of releases.entries()) {
          if (run !== null) await settle('release', [run], answers[index] as Answer)
        }
        return answers
      },
    },
  }
  return { storage: { ...storage, cluster }, witness }
}

interface Answer {
  readonly kept: boolean
  readonly created: readonly string[]
}

function add(lists: Map<string, string[]>, name: string, value: string): void {
  lists.set(name, [...(lists.get(name) ?? []), value])
}
