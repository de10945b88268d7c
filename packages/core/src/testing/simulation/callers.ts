import { DurablyError } from '../../base'
import type { TriggerOptions } from '../../job'
import type { Fleet } from './fleet'
import type { Model } from './model'
import { waitingRows } from './model-run'
import type { Random } from './random'
import { makeScript, SIGNALS } from './script-maker'
import { isOutputOf } from './script-outcome'
import type { Script } from './scripts'
import { EVERY_JOB, type JobName, type SimProcess } from './sim-process'
import type { Trace } from './trace'
import { must } from './violation'
import type { World } from './world'

export interface CallersParams {
  readonly world: World
  readonly model: Model
  readonly fleet: Fleet
  readonly trace: Trace
  /** For what an answer shows to be wrong after the call itself was right. */
  readonly judge: (judgement: () => void) => void
}

const ACTIONS = {
  trigger: 12,
  batchTrigger: 3,
  cancel: 9,
  retry: 7,
  deleteRun: 5,
  purge: 1,
  signal: 8,
  wait: 2,
  recoverDead: 2,
  recoverOwn: 1,
  stop: 3,
  kill: 0.5,
  wake: 1,
  read: 4,
} as const

type ActionKind = keyof typeof ACTIONS

/** People and programs that use the API of any living process, one action after another, without waiting for answers. */
export class Callers {
  readonly #params: CallersParams
  #actions = 0

  constructor(params: CallersParams) {
    this.#params = params
  }

  get actions(): number {
    return this.#actions
  }

  act(): void {
    const { world, fleet, model } = this.#params
    const process = world.random.pickAny(fleet.alive())
    if (process === undefined) return
    this.#actions += 1
    const kind: ActionKind = model.runs.size === 0 ? 'trigger' : world.random.weighted(ACTIONS)
    const runId = world.random.pickAny([...model.runs.keys()]) ?? ''
    this.#does(process, runId)[kind]()
  }

  #does(process: SimProcess, runId: string): Readonly<Record<ActionKind, () => void>> {
    const { fleet, world } = this.#params
    const { random } = world
    const { durably } = process
    const call = (promise: Promise<unknown>) => this.#call(process, promise)
    return {
      trigger: () => this.#enqueue(process, 1),
      batchTrigger: () => this.#enqueue(process, random.between(2, 3)),
      cancel: () => call(durably.cancel(runId)),
      retry: () => call(durably.retry(runId)),
      deleteRun: () => call(durably.deleteRun(runId)),
      purge: () => call(durably.purge({ olderThan: random.int(4000), keepNewest: random.int(3) })),
      signal: () => this.#signal(process, runId),
      wait: () => this.#wait(process, runId),
      recoverDead: () => {
        const workerId = random.pickAny(fleet.deadWorkerIds())
        // Every third of them has left on purpose.
        if (workerId !== undefined) call(durably.recover({ workerId, crashed: this.#actions % 3 !== 0 }))
      },
      // As a process does after a restart under its own name.
      recoverOwn: () => call(durably.recover({ workerId: process.workerId })),
      stop: () => fleet.stop(process),
      kill: () => fleet.kill(process),
      wake: () => durably.wake(),
      read: () => this.#read(process, runId),
    }
  }

  #call<T>(process: SimProcess, promise: Promise<T>, then: (value: T) => void = () => {}): void {
    const { judge } = this.#params
    promise.then(
      (value) => judge(() => then(value)),
      (error: unknown) => judge(() => judgeRefusal(this.#params, process, error)),
    )
  }

  #enqueue(process: SimProcess, count: number): void {
    const { world, model, judge } = this.#params
    const handle = process.jobs[world.random.pick(knownTo(process))]
    if (handle === undefined) return
    const call = String(this.#actions)
    const items = Array.from({ length: count }, (_, item) => ({
      payload: makeScript(world.random),
      options: { ...makeOptions(world.random), labels: { call: `${call}.${item}` } },
    }))
    handle.batchTrigger(items).then(
      (runs) =>
        judge(() => {
          must(runs.length === count, () => `batchTrigger of ${count} answered with ${runs.length} runs`)
          const lost = runs.find(({ id }) => !model.runs.has(id) && !model.removed.has(id))
          must(lost === undefined, () => `trigger answered ${lost?.id}, which is nowhere`)
        }),
      (error: unknown) => judge(() => judgeFailedTrigger(this.#params, call, error)),
    )
  }

  /** Mostly to a run that may take it, early or late; at times the same one twice, as somebody does who got no answer. */
  #signal(process: SimProcess, anyRunId: string): void {
    const { world, model } = this.#params
    const { random } = world
    const open = [...model.runs.values()].filter((run) => run.finishedAt === null)
    const runId = random.chance(0.85) ? (random.pickAny(open)?.wanted.id ?? anyRunId) : anyRunId
    const [name, dedupeKey] = [random.pick(SIGNALS), random.chance(0.4) ? `key-${random.int(3)}` : undefined]
    const send = () => process.durably.signal(runId, name, this.#actions, { dedupeKey })
    this.#call(process, send())
    if (dedupeKey !== undefined && random.chance(0.3)) this.#call(process, send())
  }

  /** Sends what runs wait for that nothing else ends; whether all is sent is for the caller to ask. */
  answerWaits(): () => boolean {
    const { world, model, fleet } = this.#params
    let open = 0
    for (const run of model.runs.values()) {
      if (run.finishedAt !== null) continue
      const row = waitingRows(run).find(({ kind }) => kind === 'signal')
      const process = world.random.pickAny(fleet.alive())
      if (row === undefined || process === undefined) continue
      this.#actions += 1
      open += 1
      const sent = process.durably.signal(run.wanted.id, row.waitName ?? '', this.#actions)
      this.#call(
        process,
        sent.finally(() => {
          open -= 1
        }),
      )
    }
    return () => open === 0
  }

  #wait(process: SimProcess, runId: string): void {
    const run = this.#params.model.runs.get(runId)
    const handle = process.jobs[(run?.wanted.jobName ?? '') as JobName]
    if (run === undefined || handle === undefined) return
    this.#call(process, handle.wait(runId, { timeout: 20_000 }), ({ output }) => {
      const script = JSON.parse(run.wanted.payload ?? '') as Script
      const attempts = Array.from({ length: run.attempt }, (_, index) => index + 1)
      const isRight = attempts.some((attempt) => isOutputOf({ script, attempt }, output))
      must(isRight, () => `wait(${runId}) resolved with ${JSON.stringify(output)}`)
    })
  }

  #read(process: SimProcess, runId: string): void {
    const { getRun, getRuns, getSteps, counts, explain } = process.durably
    const reads = [getRun, getSteps, explain, () => getRuns(), () => counts()] as const
    this.#call<unknown>(process, this.#params.world.random.pick<(id: string) => Promise<unknown>>(reads)(runId))
  }
}

function makeOptions(random: Random): TriggerOptions {
  const key = random.chance(0.45) ? random.between(1, 2) : null
  return {
    ...(random.chance(0.3) && {
      idempotencyKey: `once-${random.int(3)}`,
      onConflict: random.chance(0.3) ? 'reject' : 'return',
    }),
    ...(key !== null && {
      concurrencyKey: `key-${key}`,
      concurrencyLimit: key,
      holdKeyWhileWaiting: random.chance(0.2),
    }),
    ...(random.chance(0.2) && { delay: random.between(100, 6000) }),
    ...(random.chance(0.2) && { priority: random.between(1, 2) }),
  }
}

function knownTo(process: SimProcess) {
  const known = EVERY_JOB.filter((name) => process.jobs[name] !== undefined)
  return [known[0] ?? 'scripted', ...known.slice(1)] as const
}

const EXPECTED = [
  'NOT_FOUND',
  'CONFLICT',
  'STORAGE_BUSY',
  'STORAGE_UNAVAILABLE',
  'RUN_FAILED',
  'CANCELLED',
  'TIMEOUT',
  'CLOSED',
]

function judgeRefusal({ trace }: CallersParams, process: SimProcess, error: unknown): void {
  trace(process, `call rejected: ${String(error)}`)
  const isTrouble = error instanceof Error && error.message === 'socket hang up'
  must(
    isTrouble || (error instanceof DurablyError && EXPECTED.includes(error.code)),
    () => `a call rejected with ${String(error)}`,
  )
}

/** Any other error than an unknown outcome says that nothing was written. */
function judgeFailedTrigger({ model }: CallersParams, call: string, error: unknown): void {
  const code = error instanceof DurablyError ? error.code : String(error)
  if (code === 'UNKNOWN_OUTCOME') return
  must(code === 'CONFLICT' || code === 'STORAGE_BUSY', () => `a trigger rejected with ${code}`)
  const written = [...model.runs.values()].find(({ wanted }) => wanted.labels['call']?.split('.')[0] === call)
  must(written === undefined, () => `a trigger rejected with ${code}, and run ${written?.wanted.id} had been created`)
}
