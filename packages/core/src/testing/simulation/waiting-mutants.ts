import type { NewRun, Outcome, RunCommit, RunRecord, SignalStorage, StepRecord, Storage } from '../../port'

type Mutant = (storage: Storage) => Storage

/** Storages that lose, double or hurry what runs wait for. */
export const WAITING_STORAGE_MUTANTS: Readonly<Record<string, Mutant>> = {
  'a suspension overlooks what came meanwhile': (storage) => ({ ...storage, commit: suspendBlindly(storage) }),
  'a signal does not count as a wake': signalsDoNotWake,
  'a signal that was used up stays': (storage) => withCommits(storage, (one) => ({ ...one, consumedSignals: [] })),
  'the end of a child does not wake its parent': forgetParents,
  'a run rests on when its last child has ended': (storage) =>
    withOutcomes(storage, (outcome) => wantingMoreWakes(outcome, Number.MAX_SAFE_INTEGER - 1)),
  'only the parent of a run hears of its end': wakeParentsOnly,
  'a wait begins anew with each claim': waitsBeginAnew,
  'a wait that is over forgets when it was due': (storage) =>
    withSteps(storage, (step) => (step.status === 'waiting' ? step : { ...step, dueAt: null })),
  'a run is tried again at once': (storage) =>
    withOutcomes(storage, (outcome) => (outcome.kind === 'retryLater' ? { ...outcome, delayMs: 0 } : outcome)),
  'a signal counts as often as it is sent': (storage) =>
    withSignals(storage, (signals) => ({
      ...signals,
      send: (signal) => signals.send({ ...signal, dedupeKey: null }),
    })),
  'a child is stored beside the commit of its step': enqueueChildrenFirst,
}

/** Engines that see waits wrongly, as a wrapper around what they read and write. */
export const WAITING_ENGINE_MUTANTS: Readonly<Record<string, Mutant>> = {
  'takes every wait for over': (storage) => withSteps(storage, (step) => ({ ...step, isDue: step.dueAt !== null })),
  'reads the last signal first': (storage) =>
    withSignals(storage, (signals) => ({
      ...signals,
      getUnread: async (runId) => [...(await signals.getUnread(runId))].reverse(),
    })),
  'sees signals again that it used up': (storage) =>
    withSignals(storage, (signals) => {
      const seen = new Map<string, Awaited<ReturnType<SignalStorage['getUnread']>>>()
      return {
        ...signals,
        async getUnread(runId) {
          const before = seen.get(runId) ?? []
          const more = (await signals.getUnread(runId)).filter(
            (each) => !before.some(({ position }) => position === each.position),
          )
          seen.set(runId, [...before, ...more])
          return [...before, ...more]
        },
      }
    }),
  'claims to have heard of every wake': (storage) => ({ ...storage, commit: suspendBlindly(storage) }),
  'waits for one child too many': (storage) => withOutcomes(storage, (outcome) => wantingMoreWakes(outcome, 1)),
  'forgets for what it waits': (storage) =>
    withOutcomes(storage, (outcome) => (outcome.kind === 'suspend' ? { ...outcome, steps: ['nothing'] } : outcome)),
  'counts no failures of steps': (storage) =>
    withSteps(storage, (step) => (step.status === 'failed' ? { ...step, attempt: 0 } : step)),
  'tries a step again and again': (storage) => ({
    ...storage,
    getSteps: async (runId, scope) =>
      (await storage.getSteps(runId, scope)).filter(({ status }) => status !== 'failed'),
  }),
}

function withCommits(storage: Storage, change: (one: RunCommit) => RunCommit): Storage {
  return { ...storage, commit: (commits) => storage.commit(commits.map(change)) }
}

function withOutcomes(storage: Storage, change: (outcome: Outcome) => Outcome): Storage {
  return withCommits(storage, (one) => (one.outcome === null ? one : { ...one, outcome: change(one.outcome) }))
}

function withSteps(storage: Storage, change: (step: StepRecord) => StepRecord): Storage {
  return { ...storage, getSteps: async (runId, scope) => (await storage.getSteps(runId, scope)).map(change) }
}

function withRuns(storage: Storage, change: (run: RunRecord) => RunRecord): Storage {
  return {
    ...storage,
    claim: async (params) => (await storage.claim(params)).map(change),
    getRuns: async (query) => (await storage.getRuns(query)).map(change),
    async getRun(runId, scope) {
      const run = await storage.getRun(runId, scope)
      return run === null ? null : change(run)
    },
  }
}

function withSignals(storage: Storage, change: (signals: SignalStorage) => SignalStorage): Storage {
  return storage.signals === undefined ? storage : { ...storage, signals: change(storage.signals) }
}

function suspendBlindly(storage: Storage): Storage['commit'] {
  return async (commits) => {
    const blind: RunCommit[] = []
    for (const one of commits) {
      const wakesSeen = (await storage.getRun(one.lease.runId))?.wakes ?? 0
      const isSuspension = one.outcome?.kind === 'suspend'
      blind.push(isSuspension ? { ...one, outcome: { ...one.outcome, wakesSeen } } : one)
    }
    return storage.commit(blind)
  }
}

function signalsDoNotWake(storage: Storage): Storage {
  const missing = new Map<string, number>()
  const countOf = (runId: string) => missing.get(runId) ?? 0
  const shown = withRuns(storage, (run) => ({ ...run, wakes: run.wakes - countOf(run.id) }))
  const quiet = withSignals(shown, (signals) => ({
    ...signals,
    async send(signal) {
      const answer = await signals.send(signal)
      if (answer.kept) missing.set(signal.runId, countOf(signal.runId) + 1)
      return answer
    },
  }))
  return {
    ...quiet,
    async commit(commits) {
      const answers = await suspendBlindly(storage)(commits)
      return answers.map((answer, index) =>
        answer.kept ? { ...answer, wakes: answer.wakes - countOf(commits[index]?.lease.runId ?? '') } : answer,
      )
    },
  }
}

/** Only the link that the end of the child follows is gone: readers see it. */
function forgetParents(storage: Storage): Storage {
  const parents = new Map<string, string>()
  const shown = withRuns(storage, (run) => ({ ...run, parentRunId: parents.get(run.id) ?? run.parentRunId }))
  return withCommits(shown, (one) => ({
    ...one,
    steps: one.steps.map((step) => {
      if (step.child === null) return step
      parents.set(step.child.id, one.lease.runId)
      return { ...step, child: { ...step.child, parentRunId: null } }
    }),
  }))
}

function wantingMoreWakes(outcome: Outcome, more: number): Outcome {
  if (outcome.kind !== 'suspend') return outcome
  return { ...outcome, wakesWanted: Math.min(outcome.wakesWanted + more, Number.MAX_SAFE_INTEGER) }
}

/** Whoever else waits for a run is noted where readers see it, and nowhere else. */
function wakeParentsOnly(storage: Storage): Storage {
  const others = new Map<string, readonly string[]>()
  const shown = withRuns(storage, (run) => ({ ...run, alsoAwaitedBy: others.get(run.id) ?? [] }))
  const parentOf = async ({ id, jobName, idempotencyKey, parentRunId }: NewRun) => {
    if (idempotencyKey === null || parentRunId === null) return parentRunId
    const runs = await storage.getRuns({ jobNames: [jobName] })
    const known = runs.find((run) => run.idempotencyKey === idempotencyKey && run.id !== id)
    if (known === undefined || known.parentRunId === parentRunId) return parentRunId
    others.set(known.id, [...(others.get(known.id) ?? []), parentRunId])
    return null
  }
  return {
    ...shown,
    async commit(commits) {
      const changed: RunCommit[] = []
      for (const one of commits) {
        const steps = []
        for (const step of one.steps) {
          const { child } = step
          steps.push(child === null ? step : { ...step, child: { ...child, parentRunId: await parentOf(child) } })
        }
        changed.push({ ...one, steps })
      }
      return storage.commit(changed)
    },
  }
}

function waitsBeginAnew(storage: Storage): Storage {
  const claims = new Map<string, string>()
  const shown = withSteps(storage, (step) => {
    const claimedAt = claims.get(step.runId)
    if (step.status !== 'waiting' || step.dueAt === null || claimedAt === undefined) return step
    const delayMs = Date.parse(step.dueAt) - Date.parse(step.startedAt)
    const dueAt = new Date(Date.parse(claimedAt) + delayMs).toISOString()
    return { ...step, dueAt, isDue: false }
  })
  return {
    ...shown,
    async claim(params) {
      const runs = await storage.claim(params)
      for (const { id, heartbeatAt } of runs) claims.set(id, heartbeatAt ?? '')
      return runs
    },
  }
}

function enqueueChildrenFirst(storage: Storage): Storage {
  return {
    ...storage,
    async commit(commits) {
      const children = commits.flatMap(({ steps }) => steps.flatMap(({ child }) => child ?? []))
      if (children.length > 0) await storage.enqueue(children)
      return storage.commit(commits)
    },
  }
}
