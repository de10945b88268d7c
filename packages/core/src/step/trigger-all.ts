import type { ChildRuns, EventInput, JobDeclaration, TriggerAllOptions } from '../job'
import { type CtxCall, openCall } from './call'
import { type Engine, isWatched } from '../engine'
import { decodeValue, InvalidOptionError, type OptionNames, requireInteger } from '../base'
import { commitOrFail, replayFailure } from './failure'
import { checkpointOf, elapsedMs, idsOf, newRow, type CallRow } from './row'
import type { RecordedStep, StepScope } from './scope'
import { CHILD_OPTIONS, knownJob, refuseBadChild } from './trigger'
import { newRunOf } from '../client'
import type { NewRun } from '../port'

export interface TriggerAllParams {
  readonly call: CtxCall
  readonly job: { readonly name: string }
  readonly payloads: readonly unknown[]
  readonly options: TriggerAllOptions
}

/** Their ids are one value. */
const MOST_CHILDREN = 30_000

/** Of one commit, which must not hold up everybody else who writes. */
const CHILDREN_TOGETHER = 500
const LENGTH_TOGETHER = 1024 * 1024

/**
 * `ctx.triggerAll`: the runs are created in commits of some hundreds, each with the ids of those that are there so far, so
 * that a start after a crash, or an attempt after a refusal, goes on with the rest.
 */
export function triggerAllStep({ call, job, payloads, options }: TriggerAllParams): Promise<ChildRuns> {
  return openCall(call, 'triggerAll', async (index) => {
    const { scope, name } = call
    const before = scope.recorded.get(name)
    if (before?.status === 'completed') return childrenOf(job, idsIn(before.output))
    replayFailure(scope, name, false)
    refuseBadCall(name, payloads, options)
    const definition = knownJob(scope.engine, job, `ctx.triggerAll("${name}")`)
    const children = await toChildren(call, { definition, payloads, options })
    const row = newRow({ scope, name, index, kind: 'triggerAll', before })
    row.checkpoint ??= checkpointOf(scope.failed.get(name), 'triggerAll')
    const ids = await createAll(row, children)
    return childrenOf(job, ids)
  })
}

interface ChildrenParams {
  readonly definition: JobDeclaration
  readonly payloads: readonly unknown[]
  readonly options: TriggerAllOptions
}

/** All of them checked before the first is created. */
async function toChildren(call: CtxCall, { definition, payloads, options }: ChildrenParams): Promise<NewRun[]> {
  const { engine, run, interruption } = call.scope
  const { limit, ...given } = options
  const limited = limit === undefined ? {} : { concurrencyKey: `${run.id}/${call.name}`, concurrencyLimit: limit }
  const own = { ...given, ...limited, tenant: run.tenant }
  const children: NewRun[] = []
  for (const payload of payloads) {
    children.push({ ...(await newRunOf(engine, { job: definition, payload, options: own })), parentRunId: run.id })
    await engine.breathe()
    if (interruption.reason() !== null) throw interruption.cause()
  }
  return children
}

async function createAll(row: CallRow, children: readonly NewRun[]): Promise<readonly string[]> {
  const { scope } = row
  let ids = row.checkpoint === null ? [] : idsIn(row.checkpoint)
  for (;;) {
    const some = nextOf(children, ids.length)
    ids = [...ids, ...some.map(({ id }) => id)]
    if (ids.length >= children.length) return complete(row, { ids, some })
    const checkpoint = JSON.stringify(ids)
    const { row: recorded } = await commitOrFail(row, 'started', { children: some, checkpoint, hasProgressed: true })
    // Of runs that are there: when the next ones are refused, it is what the row of the failure has.
    row.checkpoint = checkpoint
    note(row, recorded, some)
    if (scope.interruption.reason() !== null) throw scope.interruption.cause()
  }
}

interface LastOnes {
  readonly ids: readonly string[]
  readonly some: readonly NewRun[]
}

async function complete(row: CallRow, { ids, some }: LastOnes): Promise<readonly string[]> {
  const event: EventInput = { type: 'step:complete', ...idsOf(row), output: ids, duration: elapsedMs(row) }
  const { row: recorded, seq } = await commitOrFail(row, 'completed', {
    ...{ children: some, checkpoint: null, output: JSON.stringify(ids), event },
  })
  note(row, recorded, some)
  row.scope.engine.events.emit(event, seq)
  return ids
}

function note({ scope, name }: CallRow, recorded: RecordedStep, some: readonly NewRun[]): void {
  scope.recorded.set(name, recorded)
  announce(scope, some)
}

function announce({ engine }: StepScope, some: readonly NewRun[]): void {
  if (!isHeard(engine)) return
  for (const { id, jobName, payload } of some) {
    engine.events.emit({ type: 'run:trigger', runId: id, jobName, payload: decodeValue(payload) })
  }
}

function isHeard(engine: Engine): boolean {
  return isWatched(engine, 'run:trigger')
}

function nextOf(children: readonly NewRun[], from: number): readonly NewRun[] {
  let length = 0
  let to = from
  while (to < children.length && to - from < CHILDREN_TOGETHER && (to === from || length < LENGTH_TOGETHER)) {
    length += children[to]?.payload?.length ?? 0
    to += 1
  }
  return children.slice(from, to)
}

const { idempotencyKey: _key, ...OPTIONS_OF_EACH } = CHILD_OPTIONS
const TRIGGER_ALL_OPTIONS: OptionNames<TriggerAllOptions> = { ...OPTIONS_OF_EACH, limit: true }

function refuseBadCall(name: string, payloads: readonly unknown[], options: TriggerAllOptions): void {
  const call = `ctx.triggerAll("${name}")`
  if (!Array.isArray(payloads)) throw new InvalidOptionError(`${call} needs a list of payloads.`)
  if (payloads.length > MOST_CHILDREN) {
    const most = `${MOST_CHILDREN} runs at most, not ${payloads.length}. Use several calls, each with a name of its own.`
    throw new InvalidOptionError(`${call} creates ${most}`)
  }
  if (typeof options === 'object' && options !== null && 'idempotencyKey' in options) {
    throw new InvalidOptionError(
      `${call} takes no idempotencyKey: one key has one run. Each run is created once anyway.`,
    )
  }
  refuseBadChild(call, options, TRIGGER_ALL_OPTIONS)
  const { limit, concurrencyKey, concurrencyLimit } = options
  if (limit === undefined) return
  if (concurrencyKey !== undefined || concurrencyLimit !== undefined) {
    throw new InvalidOptionError(`${call}: give either limit or a concurrencyKey of your own, not both.`)
  }
  requireInteger(`${call}: limit`, limit, { from: 1, to: 1000 })
}

function idsIn(text: string | null): readonly string[] {
  return decodeValue(text) as readonly string[]
}

function childrenOf({ name: jobName }: { readonly name: string }, ids: readonly string[]): ChildRuns {
  return { jobName, ids, count: ids.length }
}
