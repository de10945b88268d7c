import type { Storage } from '@coji/durably-core/storage'
import { claim } from './claim.ts'
import { command, purge } from './commands.ts'
import { commit, renew } from './commit.ts'
import { Draft } from './draft.ts'
import { enqueue } from './enqueue.ts'
import { LogFile } from './log-file.ts'
import { lockFor } from './process-lock.ts'
import { countRuns, findRuns, nextDue, toSteps } from './reads.ts'
import { recover } from './recover.ts'
import { State, type Change } from './state.ts'

/** Keeps runs in one file of JSON lines, for one process at a time. Memory is the index, the file is the truth. */
export function openJsonLinesStorage(path: string): Storage {
  const unlock = lockFor(path)
  const state = new State()
  const log = new LogFile(path, (json) => state.apply(JSON.parse(json) as Change))

  /** Decide, write one line, then believe it: exactly what a later replay will. */
  async function write<T>(decide: (draft: Draft) => T): Promise<T> {
    log.assertOpen()
    const draft = new Draft(state)
    const answer = decide(draft)
    const change = draft.toChange()
    if (change !== null) {
      const json = JSON.stringify(change)
      log.append(json)
      state.apply(JSON.parse(json) as Change)
    }
    return structuredClone(answer)
  }

  async function read<T>(look: () => T): Promise<T> {
    log.assertOpen()
    return structuredClone(look())
  }

  return {
    migrate: async () => log.assertOpen(),
    enqueue: (runs) => write((draft) => enqueue(draft, runs)),
    claim: (params) => write((draft) => claim(draft, params)),
    commit: (commits) => write((draft) => commit(draft, commits)),
    renew: (leases, leaseMs) => write((draft) => renew(draft, leases, leaseMs)),
    recover: (params) => write((draft) => recover(draft, params)),
    command: (order) => write((draft) => command(draft, order)),
    purge: (params) => write((draft) => purge(draft, params)),
    getRun: (runId, scope) => read(() => findRuns(state, { ids: [runId], ...scope })[0] ?? null),
    getRuns: (query) => read(() => findRuns(state, query)),
    getSteps: (runId, scope) =>
      read(() => toSteps(findRuns(state, { ids: [runId], ...scope }).flatMap(({ id }) => state.steps(id)))),
    counts: ({ upTo, ...query }) => read(() => countRuns(findRuns(state, query), upTo)),
    nextDue: (jobs) => read(() => nextDue(state, jobs)),
    async close() {
      log.close()
      unlock()
    },
  }
}
