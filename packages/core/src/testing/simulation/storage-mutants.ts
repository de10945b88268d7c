import type { CommitAnswer, Lease, RunCommit, RunRecord, Storage } from '../../port'
import { STREAM_ENGINE_MUTANTS } from './stream-mutants'
import { TRANSACTION_ENGINE_MUTANTS } from './transaction-mutants'
import { WAITING_ENGINE_MUTANTS, WAITING_STORAGE_MUTANTS } from './waiting-mutants'

/** Takes a rule away from a storage. */
export type Mutant = (storage: Storage) => Storage

/** Storages with a fault that has been seen in the wild. The simulation has to find each. */
export const STORAGE_MUTANTS: Readonly<Record<string, Mutant>> = {
  'the fence asks for the epoch only': fenceByEpochOnly,
  'progress and logs are not fenced': unfencedProgressAndLogs,
  'recover leaves the epoch alone': recoverKeepsEpoch,
  'a commit is acknowledged before it is written': acknowledgeFirst,
  'a repeated claim claims anew': (storage) => ({
    ...storage,
    claim: ({ repeat: _repeat, ...params }) => storage.claim(params),
  }),
  'a worker that left on purpose counts as lost': (storage) => ({
    ...storage,
    recover: ({ isCrash: _isCrash, ...params }) => storage.recover(params),
  }),
  'a list of commits stops at the first lost lease': (storage) => ({
    ...storage,
    async commit(commits) {
      const answers: CommitAnswer[] = []
      for (const one of commits) {
        const isOver = answers.some((answer) => !answer.kept)
        answers.push(isOver ? { kept: false } : ((await storage.commit([one]))[0] ?? { kept: false }))
      }
      return answers
    },
  }),
  'a batch is stored one run at a time': (storage) => ({
    ...storage,
    async enqueue(runs) {
      const answers = []
      for (const run of runs) answers.push(...(await storage.enqueue([run])))
      return answers
    },
  }),
  'runs that wait for a retry are not told from others': (storage) => ({
    ...storage,
    counts: async (query) => ({ ...(await storage.counts(query)), waitsForRetry: 0 }),
  }),
  'parked runs are not told from others': (storage) => ({
    ...storage,
    counts: async (query) => ({ ...(await storage.counts(query)), parked: 0 }),
  }),
  'suspects are taken without limit': (storage) => ({
    ...storage,
    claim: (params) => storage.claim({ ...params, holdsSuspect: false }),
  }),
  ...WAITING_STORAGE_MUTANTS,
}

/** Engines that do not listen, as a wrapper around what they hear. */
export const ENGINE_MUTANTS: Readonly<Record<string, Mutant>> = {
  'is deaf to a lost lease': (storage) => ({
    ...storage,
    async commit(commits) {
      const answers = await storage.commit(commits)
      return answers.map((answer) => (answer.kept ? answer : PRETENDED))
    },
    async renew(leases, leaseMs) {
      const answers = await storage.renew(leases, leaseMs)
      return answers.map((answer) => (answer.kept ? answer : { kept: true, wakes: 0, cancelRequested: false }))
    },
  }),
  'is deaf to a cancel': (storage) => ({
    ...storage,
    async commit(commits) {
      const answers = await storage.commit(commits)
      return answers.map((answer) => (answer.kept ? { ...answer, cancelRequested: false } : answer))
    },
    async renew(leases, leaseMs) {
      const answers = await storage.renew(leases, leaseMs)
      return answers.map((answer) => (answer.kept ? { ...answer, cancelRequested: false } : answer))
    },
  }),
  'takes one suspect after the other': (storage) => ({
    ...storage,
    claim: (params) => storage.claim({ ...params, holdsSuspect: false }),
  }),
  'takes every commit for progress': (storage) => ({
    ...storage,
    commit: (commits) => storage.commit(commits.map((one) => ({ ...one, hasProgressed: true }))),
  }),
  'gives a commit that is sent again a new number': renumberCommits,
  'gives runs that are sent again new ids': (storage) => {
    let count = 0
    return {
      ...storage,
      enqueue(runs) {
        count += 1
        return storage.enqueue(runs.map((run) => ({ ...run, id: `${run.id}-${count}` })))
      },
    }
  },
  ...WAITING_ENGINE_MUTANTS,
  ...STREAM_ENGINE_MUTANTS,
  ...TRANSACTION_ENGINE_MUTANTS,
}

const PRETENDED = { kept: true, status: 'running', seq: 0, wakes: 0, cancelRequested: false, children: [] } as const

function fenceByEpochOnly(storage: Storage): Storage {
  return {
    ...storage,
    async commit(commits) {
      const forged: RunCommit[] = []
      for (const one of commits) {
        const run = await storage.getRun(one.lease.runId)
        const isCurrent = run?.status === 'running' && run.leaseEpoch === one.lease.epoch
        forged.push({ ...one, lease: { ...one.lease, token: (isCurrent ? run.claimToken : null) ?? one.lease.token } })
      }
      return storage.commit(forged)
    },
  }
}

function unfencedProgressAndLogs(storage: Storage): Storage {
  const stray = new Map<string, RunCommit[]>()
  const show = (run: RunRecord): RunRecord => {
    const strays = stray.get(run.id)
    return strays === undefined
      ? run
      : { ...run, progress: strays.at(-1)?.progress ?? run.progress, version: run.version + strays.length }
  }
  return {
    ...storage,
    async commit(commits) {
      const answers = await storage.commit(commits)
      commits.forEach((one, index) => {
        if (answers[index]?.kept === true || (one.progress === null && one.logs.length === 0)) return
        stray.set(one.lease.runId, [...(stray.get(one.lease.runId) ?? []), one])
      })
      return answers
    },
    getRuns: async (query) => (await storage.getRuns(query)).map(show),
  }
}

function recoverKeepsEpoch(storage: Storage): Storage {
  const missing = new Map<string, number>()
  const shown = (run: RunRecord): RunRecord => ({ ...run, leaseEpoch: run.leaseEpoch - (missing.get(run.id) ?? 0) })
  const real = (lease: Lease): Lease => ({ ...lease, epoch: lease.epoch + (missing.get(lease.runId) ?? 0) })
  return {
    ...storage,
    async recover(params) {
      const runs = await storage.recover(params)
      for (const { id } of runs) missing.set(id, (missing.get(id) ?? 0) + 1)
      return runs.map(shown)
    },
    claim: async (params) => (await storage.claim(params)).map(shown),
    commit: (commits) => storage.commit(commits.map((one) => ({ ...one, lease: real(one.lease) }))),
    renew: (leases, leaseMs) => storage.renew(leases.map(real), leaseMs),
    getRuns: async (query) => (await storage.getRuns(query)).map(shown),
  }
}

/** What was acknowledged is written with the next call that writes. */
function acknowledgeFirst(storage: Storage): Storage {
  let acknowledged: readonly RunCommit[] = []
  const flush = async () => {
    const commits = acknowledged
    acknowledged = []
    if (commits.length > 0) await storage.commit(commits)
  }
  return {
    ...storage,
    async commit(commits) {
      await flush()
      const answers: CommitAnswer[] = []
      for (const { lease, commitNo } of commits) {
        const run = await storage.getRun(lease.runId)
        const isHeld =
          run?.claimToken === lease.token && run.leaseEpoch === lease.epoch && run.commitNo === commitNo - 1
        answers.push(isHeld ? { ...PRETENDED, seq: run.lastEventSequence } : { kept: false })
      }
      acknowledged = commits
      return answers
    },
    async claim(params) {
      await flush()
      return storage.claim(params)
    },
    async recover(params) {
      await flush()
      return storage.recover(params)
    },
  }
}

function renumberCommits(storage: Storage): Storage {
  const extra = new Map<string, number>()
  const nameOf = ({ lease }: RunCommit) => `${lease.runId}/${lease.epoch}/${lease.token}`
  return {
    ...storage,
    async commit(commits) {
      try {
        return await storage.commit(
          commits.map((one) => ({ ...one, commitNo: one.commitNo + (extra.get(nameOf(one)) ?? 0) })),
        )
      } catch (error) {
        for (const one of commits) extra.set(nameOf(one), (extra.get(nameOf(one)) ?? 0) + 1)
        throw error
      }
    },
  }
}
