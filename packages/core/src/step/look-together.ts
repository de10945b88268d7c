import type { RunRecord, SignalRecord, SignalStorage, Storage } from '../port'
import { askPatiently, type Engine } from '../engine'
import type { Interruption } from './interruption'

/** How many runs one read asks for. */
const RUNS_TOGETHER = 500

interface Look<T> {
  readonly answer: Promise<T>
}

/** The waits of one execution look for what they wait for. Those that look at the same moment share a read. */
export class LookTogether {
  readonly #engine: Engine
  readonly #interruption: Interruption
  readonly #runId: string
  /** Positions of signals that a wait of this execution has taken. */
  readonly #taken = new Set<number>()
  #signals: Look<ReadonlyMap<string, SignalRecord[]>> | null = null
  #children: (Look<ReadonlyMap<string, RunRecord>> & { readonly ids: string[] }) | null = null

  constructor(engine: Engine, interruption: Interruption, runId: string) {
    this.#engine = engine
    this.#interruption = interruption
    this.#runId = runId
  }

  /** The next signal of that name; each is handed out once. */
  async takeSignal(storage: SignalStorage, name: string): Promise<SignalRecord | null> {
    this.#signals ??= {
      answer: soon(() => {
        this.#signals = null
        return this.ask(async () => byName(await storage.getUnread(this.#runId)))
      }),
    }
    const unread = (await this.#signals.answer).get(name) ?? []
    for (let next = unread.shift(); next !== undefined; next = unread.shift()) {
      // Another look may have found it before.
      if (this.#taken.has(next.position)) continue
      this.#taken.add(next.position)
      return next
    }
    return null
  }

  async child(id: string): Promise<RunRecord | null> {
    if (this.#children === null) {
      const ids: string[] = []
      const answer = soon(() => {
        this.#children = null
        return this.#readRuns(ids)
      })
      this.#children = { ids, answer }
    }
    this.#children.ids.push(id)
    return (await this.#children.answer).get(id) ?? null
  }

  async #readRuns(ids: readonly string[]): Promise<ReadonlyMap<string, RunRecord>> {
    const found = new Map<string, RunRecord>()
    for (let start = 0; start < ids.length; start += RUNS_TOGETHER) {
      const some = ids.slice(start, start + RUNS_TOGETHER)
      for (const run of await this.ask((storage) => readRuns(storage, some))) found.set(run.id, run)
    }
    return found
  }

  /** For what a wait reads that no other wait asks for. */
  ask<T>(call: (storage: Storage) => Promise<T>): Promise<T> {
    return askPatiently({ engine: this.#engine, interruption: this.#interruption, during: 'look for a wait', call })
  }
}

async function readRuns(storage: Storage, ids: readonly string[]): Promise<readonly RunRecord[]> {
  const [only] = ids
  if (ids.length > 1 || only === undefined) return storage.getRuns({ ids })
  const run = await storage.getRun(only)
  return run === null ? [] : [run]
}

/** A read that has begun is too old for who looks only now, so it begins when all have asked who are about to. */
async function soon<T>(read: () => Promise<T>): Promise<T> {
  await Promise.resolve()
  return read()
}

function byName(unread: readonly SignalRecord[]): ReadonlyMap<string, SignalRecord[]> {
  const signals = new Map<string, SignalRecord[]>()
  for (const signal of unread) {
    const same = signals.get(signal.name)
    if (same === undefined) signals.set(signal.name, [signal])
    else same.push(signal)
  }
  return signals
}
