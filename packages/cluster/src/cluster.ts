import { InvalidOptionError, type Durably } from '@coji/durably-core'
import {
  type OptionNames,
  refuseBadText,
  refuseUnknownOptions,
  requireBoolean,
  requireDuration,
  requireLabels,
  type StartedTerm,
} from '@coji/durably-core/extend'
import {
  type ClusterStorage,
  type KnownJobRecord,
  LEADER,
  type LeadRecord,
  REASSIGN_AFTER_MS,
  type WorkerRecord,
} from '@coji/durably-core/storage'
import { clusterOf } from './cluster-of'
import { Duty } from './duty'
import { Hinted } from './hinted'
import { LiveSettings } from './live-settings'
import { Leader, leaderOf, type LeaderStatus, setLeader } from './leader'
import { Placer } from './place'
import { Presence } from './presence'
import { takeBackOverdue } from './reassign'
import { DAY_MS, hourly } from './upkeep'

/** What `createCluster` takes. */
export interface ClusterOptions {
  /** Whether this process may lead. Default true; one that only works leaves it to the others. */
  readonly leads?: boolean | undefined
  /** Of this worker, for jobs that want their workers to have some: `placement: { labels: { gpu: 'yes' } }`. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Of the code that this process runs, for `workers()` and `jobs()`. */
  readonly version?: string | undefined
  /**
   * Milliseconds for which the leader leads without a sign of life, and a worker counts as there. Another leader is found
   * within twice the time. Default 15000.
   */
  readonly lease?: number | undefined
  /** Milliseconds after which an assignment is taken back from a worker that is gone, and ten times that from any. Default 10000. */
  readonly reassignAfter?: number | undefined
  /** Milliseconds between two looks for what other processes have changed. Default 1000. */
  readonly pollingInterval?: number | undefined
}

/** What an instance has of the cluster that it belongs to, from `durably.start()` to `durably.stop()`. */
export interface Cluster {
  /** Whether this process leads. */
  status(): LeaderStatus
  /** Who leads, or led last: `isOver` tells. */
  leader(): Promise<LeadRecord | null>
  /** The workers that have told of themselves, those of the last day that are gone included. */
  workers(): Promise<readonly WorkerRecord[]>
  /** The definitions of jobs that workers have told of, by the version of their code. */
  jobs(): Promise<readonly KnownJobRecord[]>
  /** Leads once, for tests and serverless functions: assigns what waits, and takes back what was not started. */
  lead(): Promise<{ readonly assigned: number; readonly orphaned: number }>
  /** Leaves the cluster, while the instance goes on: what it leads another one leads. */
  close(): Promise<void>
}

/**
 * Makes the processes that share a database one cluster: one of them leads, and assigns the runs of jobs with
 * `placement: 'leader'` to workers. Schedules and messages of these processes are then done by the leader.
 *
 * ```ts
 * const cluster = createCluster(durably, { labels: { gpu: 'yes' }, version: '2026-11-19' })
 * ```
 */
export function createCluster(durably: Durably, options: ClusterOptions = {}): Cluster {
  const { leads, labels, version, leaseMs, reassignAfterMs, everyMs } = resolved(options)
  const cluster = clusterOf(durably, 'createCluster()')
  const { placement } = cluster
  if (leaderOf(durably) !== undefined) {
    throw new InvalidOptionError('createCluster() was called for this instance already. Use what it returned.')
  }
  const settings = new LiveSettings(durably, { leaseMs, reassignAfterMs })
  const leader = new Leader({ durably, cluster, settings })
  setLeader(durably, leader)
  const presence = new Presence({ durably, placement, labels, codeVersion: version, leaseMs })
  const duties = leadersDuties({ durably, cluster, everyMs, settings })

  let endings: (() => void | Promise<void>)[] = []
  let isClosed = false
  const begin = (term: StartedTerm) => {
    if (isClosed) return
    const unwatch = durably.storage.watch?.subscribe(({ kind }) => {
      if (kind === 'runs' && leader.status().isLeader && duties.mayPlace()) duties.hinted.hint()
    })
    endings = [
      ...(leads ? [leader.start(), duties.placing.start(), duties.reassigning.start()] : []),
      () => unwatch?.(),
      () => duties.hinted.stop(),
      presence.start(term),
    ]
  }
  /** The leader first, so that another one takes over while the worker ends what it has in hand. */
  const end = async () => {
    const all = endings
    endings = []
    await Promise.all(all.map((each) => each()))
  }
  durably.use({
    name: 'cluster',
    workerLabels: labels,
    whileStarted(_durably, term) {
      begin(term)
      return end
    },
  })
  return {
    status: () => leader.status(),
    leader: () => cluster.getLead(LEADER),
    workers: () => placement.getWorkers(),
    jobs: () => placement.getJobs(),
    async lead() {
      // Nobody has looked yet where the instance was not started.
      await settings.look()
      const before = { ...duties.done }
      await duties.reassigning.workNow()
      await duties.placing.workNow()
      const { assigned, orphaned } = duties.done
      return { assigned: assigned - before.assigned, orphaned: orphaned - before.orphaned }
    },
    async close() {
      isClosed = true
      presence.leaveAtOnce()
      await end()
    },
  }
}

interface DutiesParams {
  readonly durably: Durably
  readonly cluster: ClusterStorage
  readonly everyMs: number
  readonly settings: LiveSettings
}

/** At most so many, where hints lead to nothing. */
const LOOKS_BETWEEN_POLLS = 4

/** What the leader does for the runs of all. */
function leadersDuties({ durably, cluster, everyMs, settings }: DutiesParams) {
  const { placement } = cluster
  const own = { durably, cluster, everyMs, prepare: async () => {} }
  const placer = new Placer({ durably, placement })
  const done = { assigned: 0, orphaned: 0 }
  const upkeep = hourly({ durably, cluster, remove: (lead) => placement.forgetWorkers(lead, DAY_MS) })
  const placing: Duty = new Duty({
    ...{ ...own, name: 'placement' },
    async work(lead) {
      const { assigned, isLost } = await placer.place(lead)
      done.assigned += assigned
      hinted.noteLook(assigned === 0)
      if (isLost) placing.forgetLead()
      return null
    },
  })
  const hinted = new Hinted({
    clock: durably.drafts.environment.clock,
    restMs: everyMs / LOOKS_BETWEEN_POLLS,
    look: () => placing.wake(),
  })
  const reassigning: Duty = new Duty({
    ...{ ...own, name: 'reassignment' },
    async work(lead) {
      const { reassignAfterMs } = settings.now
      const orphaned = await takeBackOverdue({ durably, placement, reassignAfterMs }, lead)
      done.orphaned += orphaned
      if (orphaned > 0) placing.wake()
      return upkeep.turn(lead)
    },
  })
  return { placing, reassigning, hinted, done, mayPlace: () => placer.mayPlace }
}

const CLUSTER_OPTIONS: OptionNames<ClusterOptions> = {
  leads: true,
  labels: true,
  version: true,
  lease: true,
  reassignAfter: true,
  pollingInterval: true,
}

function resolved(options: ClusterOptions) {
  refuseUnknownOptions('createCluster()', options, CLUSTER_OPTIONS)
  const { leads = true, labels = {}, version, lease = 15_000, pollingInterval = 1000 } = options
  const { reassignAfter = REASSIGN_AFTER_MS } = options
  for (const [name, ms] of Object.entries({ lease, reassignAfter, pollingInterval })) requireDuration(name, ms)
  requireBoolean('leads', leads)
  refuseBadText('version', version)
  return {
    leads,
    labels: requireLabels(labels, 'createCluster()'),
    version: version ?? null,
    leaseMs: lease,
    reassignAfterMs: reassignAfter,
    everyMs: pollingInterval,
  }
}
