import type { Lease, RunCommand, RunCommit, SignalStorage, Storage, TransactionStorage } from '../../port'
import { RUN_STATUSES } from '../../base'
import { type SimulatedTransition, TRANSACTION_TROUBLE_CHANCE } from './faults'
import type { Model } from './model'
import { countsOf } from './model-queries'
import { compareRun } from './observer'
import type { SimProcess } from './sim-process'
import { must, mustEqual } from './violation'
import type { Call, Wire } from './wire'
import type { Witness } from './witness'

export interface WiredStorageParams {
  readonly wire: Wire
  readonly inner: Storage
  readonly model: Model
  readonly witness: Witness
  /** For the engine of this process. */
  readonly process: SimProcess
}

const nothing = () => []
const read = { stakes: nothing, mayChange: () => false } as const
const changes = { mayChange: (answer: readonly unknown[]) => answer.length > 0 } as const

/** The storage as one process sees it: every call goes over the wire and is checked where it arrives. */
export function createWiredStorage(params: WiredStorageParams): Storage {
  const { inner, model } = params
  const send = <T>(call: Call<T>) => params.wire.send(params.process, call)
  return {
    migrate: () => send({ name: 'migrate', stakes: nothing, perform: () => inner.migrate() }),
    enqueue: (runs) =>
      send({
        name: `enqueue ${runs.map((run) => run.id)}`,
        stakes: () => ['enqueue'],
        perform: () => inner.enqueue(runs),
        check(answers) {
          model.enqueued(runs, answers)
          params.witness.enqueued(answers)
        },
        mayRefuse: () => model.mayRefuse(runs),
      }),
    ...ownerCalls(params, send),
    ...operatorCalls(params, send),
    ...reads(params, send),
    ...(inner.events !== undefined && { events: inner.events }),
    ...(inner.logs !== undefined && { logs: inner.logs }),
    transaction: transactions(params, send),
    ...(inner.signals !== undefined && { signals: signals(params, inner.signals, send) }),
  }
}

type Send = <T>(call: Call<T>) => Promise<T>

function ownerCalls({ inner, model, witness, process }: WiredStorageParams, send: Send) {
  const { number } = process
  const calls: Pick<Storage, 'claim' | 'commit' | 'renew' | 'recover'> = {
    claim(params) {
      witness.claiming(number, params)
      witness.claimingBeside(number, params)
      return send({
        isWorkers: true,
        name: `claim ${params.limit}${params.repeat === true ? ' repeated' : ''}`,
        stakes: () => (params.repeat !== true && model.claimable(params).length > 0 ? ['claim'] : []),
        ...changes,
        perform: () => inner.claim(params),
        check(runs) {
          model.claimed(params, runs)
          witness.claimed(runs)
        },
        delivered: (runs) => witness.claimDelivered(number, runs),
        failed: () => witness.claimFailed(number, params),
      })
    },
    commit: (commits) =>
      send({
        isWorkers: true,
        name: `commit ${commits.map(nameOf)}`,
        stakes: () => commits.flatMap((commit) => stakesOf(model, commit)),
        perform: () => inner.commit(commits),
        check(answers) {
          witness.committing(commits)
          model.committed(commits, answers)
        },
        delivered: (answers) => witness.commitDelivered(number, commits, answers),
      }),
    renew: (leases, leaseMs) =>
      send({
        isWorkers: true,
        name: `renew ${leases.map((lease) => `${lease.runId}/${lease.epoch}`)}`,
        stakes: () => (leases.some((lease) => model.holds(lease) !== null) ? ['renew'] : []),
        perform: () => inner.renew(leases, leaseMs),
        check: (answers) => model.renewed(leases, leaseMs, answers),
        delivered: (answers) => witness.renewalDelivered(number, leases, answers),
      }),
    recover(params) {
      witness.recovering(number, params.held)
      return send({
        isWorkers: true,
        name: `recover ${params.deadWorkerId ?? 'expired'}`,
        stakes: () => (model.abandoned(params).length > 0 ? ['recover'] : []),
        ...changes,
        perform: () => inner.recover(params),
        check: (runs) => model.recovered(params, runs),
      })
    },
  }
  return calls
}

function operatorCalls({ inner, model, witness, process }: WiredStorageParams, send: Send) {
  const calls: Pick<Storage, 'command' | 'purge'> = {
    command: (command) =>
      send({
        name: `${command.kind} ${command.runId}`,
        stakes: () => (model.allows(command) ? [transitionOf(model, command)] : []),
        perform: () => inner.command(command),
        check: (answer) => model.commanded(command, answer),
        delivered(answer) {
          if (command.kind === 'cancel') witness.cancelDelivered(process.number, command.runId, answer)
        },
      }),
    purge: (params) =>
      send({
        name: `purge ${params.statuses} older than ${params.olderThanMs}`,
        stakes: nothing,
        perform: () => inner.purge(params),
        check: (count) => model.purged(params, count),
      }),
  }
  return calls
}

function reads({ inner, model }: WiredStorageParams, send: Send) {
  const calls: Pick<Storage, 'getRun' | 'getRuns' | 'getSteps' | 'counts' | 'nextDue'> = {
    getRun: (runId, scope) =>
      send({
        name: `getRun ${runId}`,
        ...read,
        perform: () => inner.getRun(runId, scope),
        check(record) {
          const run = model.runs.get(runId)
          must((record === null) === (run === undefined), () => `getRun(${runId}) is ${record?.status ?? null}`)
          if (record !== null && run !== undefined) compareRun(record, run)
        },
      }),
    getRuns: (query) => send({ name: 'getRuns', ...read, perform: () => inner.getRuns(query) }),
    getSteps: (runId, scope) =>
      send({
        name: `getSteps ${runId}`,
        ...read,
        perform: () => inner.getSteps(runId, scope),
        check(steps) {
          const run = model.runs.get(runId)
          const count = run === undefined ? 0 : run.liveSteps.size + run.failedSteps.length
          mustEqual(steps.length, count, `number of steps of ${runId}`)
        },
      }),
    counts: (query) =>
      send({
        name: 'counts',
        ...read,
        perform: () => inner.counts(query),
        check(counts) {
          const expected = countsOf(model.runs, query)
          for (const name of [...RUN_STATUSES, 'waitsForRetry', 'parked'] as const)
            mustEqual(counts[name], expected[name], `counts.${name}`)
        },
      }),
    nextDue: (jobs) => send({ name: 'nextDue', ...read, perform: () => inner.nextDue(jobs) }),
  }
  return calls
}

function signals({ model }: WiredStorageParams, inner: SignalStorage, send: Send): SignalStorage {
  return {
    send: (signal) =>
      send({
        name: `signal ${signal.name} to ${signal.runId}`,
        stakes: () => (model.allows({ kind: 'cancel', runId: signal.runId }) ? ['signal'] : []),
        perform: () => inner.send(signal),
        check: (answer) => model.signalled(signal, answer),
      }),
    getUnread: (runId) =>
      send({
        name: `getUnread ${runId}`,
        ...read,
        perform: () => inner.getUnread(runId),
        check(unread) {
          const kept = model.runs.get(runId)?.unread.map(({ position }) => position)
          mustEqual(
            unread.map(({ position }) => position),
            kept ?? [],
            `unread signals of ${runId}`,
          )
        },
      }),
  }
}

/** Of a database beside durably's tables, whose rows are stored with the commit or not at all. */
function transactions({ inner, model, witness, process }: WiredStorageParams, send: Send): TransactionStorage {
  const refuse = () => Promise.reject(new Error('Nobody opens transactions of their own.'))
  return {
    async commitWith(body) {
      const rows: string[] = []
      const { commit, value } = await body(rows)
      const [answer = { kept: false } as const] = await send({
        name: `transaction ${nameOf(commit)}`,
        trouble: TRANSACTION_TROUBLE_CHANCE,
        stakes: () => stakesOf(model, commit),
        perform: () => inner.commit([commit]),
        check(answers) {
          witness.committing([commit], rows)
          model.committed([commit], answers)
        },
        delivered(answers) {
          // Where the lease still holds, what is refused is a transaction whose number was settled meanwhile.
          const isLate = answers[0]?.kept === false && model.holds(commit.lease) !== null
          if (!isLate) witness.commitDelivered(process.number, [commit], answers)
        },
      })
      return { answer, value: answer.kept ? value : undefined }
    },
    enqueue: refuse,
    run: refuse,
  }
}

function stakesOf(model: Model, { lease, outcome }: RunCommit): SimulatedTransition[] {
  if (model.holds(lease) === null) return []
  if (outcome === null) return ['commit']
  switch (outcome.kind) {
    case 'complete':
    case 'fail':
    case 'timeOut':
    case 'cancelled':
    case 'release':
    case 'retryLater':
    case 'suspend':
      return [outcome.kind]
    default:
      return []
  }
}

function transitionOf(model: Model, { kind, runId }: RunCommand): SimulatedTransition {
  if (kind === 'retry' || kind === 'remove') return kind
  return model.runs.get(runId)?.status === 'running' ? 'requestCancel' : 'cancel'
}

function nameOf({ lease, commitNo, outcome, steps }: RunCommit): string {
  const rows = steps.map((step) => `${step.name}:${step.status}`).join('+')
  return `${shortLease(lease)}#${commitNo} ${rows} ${outcome?.kind ?? ''}`
}

function shortLease({ runId, epoch }: Lease): string {
  return `${runId}/${epoch}`
}
