import type { PlacementStorage } from '@coji/durably-core/storage'
import { createAssign } from './assign'
import { createAssigned } from './assigned'
import type { ClusterParts } from './cluster'
import { createTakeBack } from './take-back'
import { createWaiting } from './waiting'
import { createWorkers } from './workers'

type Parts = Pick<ClusterParts, 'context' | 'executor' | 'passed' | 'noteDue'>

export function createPlacement({ context, executor, passed, noteDue }: Parts): PlacementStorage {
  const workers = createWorkers(context)
  const waiting = createWaiting(context)
  const assign = createAssign(context)
  const assigned = createAssigned(context)
  const takeBack = createTakeBack(context)
  return {
    beat: (worker) => passed(() => workers.beat(executor, worker)),
    noteJobs: (codeVersion, jobs) => passed(() => workers.noteJobs(executor, codeVersion, jobs)),
    getWorkers: () => workers.list(executor.callers),
    getJobs: () => workers.jobs(executor.callers),
    forgetWorkers: (lead, silentForMs) => passed(() => workers.forget(executor, lead, silentForMs)),
    waiting: (query) => waiting(executor, query),
    async assign(lead, assignments) {
      if (assignments.length === 0) return []
      const made = await passed(() => assign(executor, lead, assignments))
      noteDue(assignments.filter((_assignment, index) => made[index] === true).map(({ runId }) => runId))
      return made
    },
    assigned: (workerId, limit) => assigned.list(executor, workerId, limit),
    async start(params) {
      const runs = params.runs.length === 0 ? [] : await passed(() => assigned.start(executor, params))
      noteDue(runs.map(({ id }) => id))
      return runs
    },
    decline: async (params) => (params.runs.length === 0 ? [] : passed(() => assigned.decline(executor, params))),
    orphan: (params) => passed(() => takeBack.orphan(executor, params)),
    async free(limit) {
      const freed = await passed(() => takeBack.free(executor, limit))
      noteDue(freed)
      return freed.length
    },
  }
}
