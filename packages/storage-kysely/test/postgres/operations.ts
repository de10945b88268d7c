import {
  type EventTemplate,
  type Lease,
  type NewLog,
  type Outcome,
  type RunCommand,
  type RunCommit,
  StorageError,
} from '@coji/durably-core/storage'
import type { KyselyStorage } from '../../src'
import { newRun, newStep } from '../builders'

/** A run of a case's own. */
export interface World {
  readonly name: string
  readonly runId: string
  /** Of the worker that claimed it first, whatever became of it. */
  readonly lease: Lease
  /** The number of its next commit. */
  readonly commitNo: number
  /** A run that this one waits for. */
  readonly child: World | null
}

interface Place {
  readonly world: World
  /** The type of the event that the operation writes when it is accepted. */
  readonly tag: string
  readonly commitNo: number
}

/** How often it was accepted. */
export type Operation = (storage: KyselyStorage, place: Place) => Promise<number>

const LEASE_MS = 60_000
const FAILURE = { error: 'broken', detail: { name: 'Error' } } as const
const NO_EVENTS = { events: [], eventsIfCancelled: [] } as const

/** How a holder leaves a run. */
export const OUTCOMES = {
  complete: { kind: 'complete', output: '"done"', ...NO_EVENTS },
  fail: { kind: 'fail', ...FAILURE, ...NO_EVENTS },
  suspend: { kind: 'suspend', steps: ['nap'], wakesSeen: 0, wakesWanted: 1, restMs: 0, ...NO_EVENTS },
  retryLater: { kind: 'retryLater', delayMs: 60_000, ...FAILURE, ...NO_EVENTS },
  release: { kind: 'release', ...NO_EVENTS },
} as const satisfies Record<string, Outcome>

function template(type: string): EventTemplate {
  return { type, payload: '{}' }
}

function newLog(id: string): NewLog {
  return { id, stepName: null, level: 'info', message: 'hello', data: null, timestamp: '2026-01-31T09:00:00.000Z' }
}

function commitOf({ world, tag, commitNo }: Place, change: Partial<RunCommit> = {}): RunCommit {
  return {
    ...{
      lease: world.lease,
      commitNo,
      leaseMs: LEASE_MS,
      hasProgressed: true,
      currentStepIndex: commitNo,
      progress: null,
    },
    steps: [newStep({ id: `${tag}-step`, name: tag })],
    logs: [newLog(`${tag}-log`)],
    events: [template(tag)],
    ...{ children: [], consumedSignals: [], outcome: null },
    ...change,
  }
}

function committing(change: (place: Place) => Partial<RunCommit> = () => ({})): Operation {
  return async (storage, place) => {
    const [answer] = await storage.commit([commitOf(place, change(place))])
    return Number(answer?.kept)
  }
}

function leaving(outcome: Outcome): Operation {
  return committing(({ tag }) => ({
    events: [],
    outcome: { ...outcome, events: [template(tag)], eventsIfCancelled: [template('before'), template(tag)] },
  }))
}

/** A transaction that meets another one is run again by the engine. */
const transaction: Operation = async (storage, place) => {
  for (;;) {
    try {
      const body = async () => ({ commit: commitOf(place), value: null })
      return Number((await storage.transaction.commitWith(body, 10_000)).answer.kept)
    } catch (error) {
      if (!(error instanceof StorageError) || error.code !== 'STORAGE_BUSY') throw error
    }
  }
}

const claim: Operation = async (storage, { world, tag }) => {
  const lease = { workerId: world.name, claimToken: tag, leaseMs: LEASE_MS, holdsSuspect: false }
  return (await storage.claim({ ...lease, jobs: [world.name], limit: 2, events: [template(tag)] })).length
}

const recover: Operation = async (storage, { world, tag }) => {
  const events = { pending: [template(tag)], cancelled: [template(tag)], failed: [template(tag)] }
  const crashLimit = { error: 'crashed', detail: { name: 'CrashLimitError' } }
  const found = await storage.recover({
    ...{ deadWorkerId: world.name, held: [], maxCrashes: 5, jitter: 0.5, limit: 10, crashLimit, events },
  })
  return found.length
}

type Order = RunCommand extends infer T ? (T extends RunCommand ? Omit<T, 'runId' | 'tenant'> : never) : never

function commanding(order: (tag: string) => Order): Operation {
  return async (storage, { world, tag }) => {
    const command = { ...order(tag), runId: world.runId } as RunCommand
    return Number((await storage.command(command)).applied)
  }
}

const signal: Operation = async (storage, { world, tag }) => {
  const answer = await storage.signals.send({
    ...{ runId: world.runId, name: 'go', payload: null, dedupeKey: tag, events: [template(tag)] },
  })
  return Number(answer.kept)
}

/** Those of a holder are numbered. */
export const OF_HOLDER: Readonly<Record<string, Operation>> = {
  step: committing(),
  trigger: committing(({ world, tag }) => ({
    steps: [
      newStep({
        id: `${tag}-step`,
        name: tag,
        child: newRun({ id: `${tag}-child`, jobName: 'no-one', parentRunId: world.runId }),
      }),
    ],
  })),
  transaction,
  complete: leaving(OUTCOMES.complete),
  fail: leaving(OUTCOMES.fail),
  suspend: leaving(OUTCOMES.suspend),
  retryLater: leaving(OUTCOMES.retryLater),
  release: leaving(OUTCOMES.release),
}

/** They write no event of their own. */
const SILENT: Readonly<Record<string, Operation>> = {
  renew: async (storage, { world }) => Number((await storage.renew([world.lease], 90_000))[0]?.kept),
  remove: commanding(() => ({ kind: 'remove' })),
  purge: (storage, { world }) =>
    storage.purge({ statuses: ['completed', 'failed', 'cancelled'], jobNames: [world.name], limit: 10 }),
}

export const OPERATIONS: Readonly<Record<string, Operation>> = {
  ...OF_HOLDER,
  ...SILENT,
  claim,
  recover,
  cancel: commanding((tag) => ({ kind: 'cancel', events: { cancelled: [template(tag)], requested: [template(tag)] } })),
  retry: commanding((tag) => ({ kind: 'retry', events: [template(tag)] })),
  signal,
}

/** The parent and the child in one group, which is one statement. */
const together: Operation = async (storage, place) => {
  const { child } = place.world
  if (child === null) throw new Error('There is no child.')
  const suspend = commitOf(place, { events: [], outcome: OUTCOMES.suspend })
  const complete = commitOf(
    { world: child, tag: `${place.tag}-child`, commitNo: child.commitNo },
    {
      ...{ events: [], outcome: OUTCOMES.complete },
    },
  )
  const answers = await storage.commit([suspend, complete])
  return answers.filter(({ kept }) => kept).length
}

const renewBoth: Operation = async (storage, { world: { lease, child } }) => {
  const leases = child === null ? [lease] : [child.lease, lease]
  return (await storage.renew(leases, 90_000)).filter(({ kept }) => kept).length
}

const OF_FAMILIES: Readonly<Record<string, Operation>> = { together, 'renew both': renewBoth }

/** An operation, on the child if its name says so. */
export function operationOf(name: string): Operation {
  const [, ofChild] = /^child (.+)$/.exec(name) ?? []
  const operation = OPERATIONS[ofChild ?? name] ?? OF_FAMILIES[name]
  if (operation === undefined) throw new Error(`There is no ${name}.`)
  if (ofChild === undefined) return operation
  return (storage, { world: { child }, tag }) => {
    if (child === null) throw new Error('There is no child.')
    return operation(storage, { world: child, tag, commitNo: child.commitNo })
  }
}

export function tells(name: string): boolean {
  return !(name in SILENT) && !(name in OF_FAMILIES)
}

/** Those that look first have one turn more. */
export function turnsOf(name: string): number {
  return /recover|purge/.test(name) ? 3 : 2
}
