import type { RunCommit, Storage } from '../../port'

type Mutant = (storage: Storage) => Storage

/** Engines that do not find out what became of a transaction, as a wrapper around what they hear. */
export const TRANSACTION_ENGINE_MUTANTS: Readonly<Record<string, Mutant>> = {
  'takes each transaction without an answer for rolled back': (storage) => {
    const { watched, isLost } = withLosses(storage)
    return {
      ...watched,
      getSteps: async (runId, scope) => (await storage.getSteps(runId, scope)).filter(({ id }) => !isLost(id)),
    }
  },
  'asks what became of a transaction before that is decided': (storage) => {
    const { watched, wasLost } = withLosses(storage)
    return {
      ...watched,
      async commit(commits) {
        const [one] = commits
        const isSettling = one !== undefined && commits.length === 1 && wasLost(one)
        return isSettling ? [PRETENDED] : storage.commit(commits)
      },
    }
  },
}

const PRETENDED = { kept: true, status: 'running', seq: 0, wakes: 0, cancelRequested: false, children: [] } as const

/** Remembers the transactions that it got no answer to. */
function withLosses(storage: Storage) {
  const rows = new Set<string>()
  const numbers = new Set<string>()
  const { transaction } = storage
  if (transaction === undefined) throw new Error('There are no transactions to lose.')
  const watched: Storage = {
    ...storage,
    transaction: {
      ...transaction,
      async commitWith(body, timeoutMs) {
        let sent: RunCommit | null = null
        try {
          return await transaction.commitWith(async (trx) => {
            const written = await body(trx)
            sent = written.commit
            return written
          }, timeoutMs)
        } catch (error) {
          if (sent !== null) {
            numbers.add(nameOf(sent))
            for (const { id, status } of (sent as RunCommit).steps) if (status === 'completed') rows.add(id)
          }
          throw error
        }
      },
    },
  }
  return {
    watched,
    isLost: (id: string) => rows.has(id),
    wasLost: (commit: RunCommit) => numbers.has(nameOf(commit)),
  }
}

function nameOf({ lease, commitNo }: RunCommit): string {
  return `${lease.runId}/${lease.epoch}/${lease.token}#${commitNo}`
}
