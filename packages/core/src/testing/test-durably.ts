import { type DurablyEvent, EVENT_TYPES, isDeclaration, type Run, type Step, type StoredEvent } from '../job'
import type { Durably, Handles, JobRecord, Plugin } from '../instance'
import {
  type EndedStatus,
  InvalidOptionError,
  isEnded,
  NotFoundError,
  type OptionNames,
  refuseUnknownOptions,
  requireDuration,
  requireInteger,
  TimeoutError,
} from '../base'
import type { DurablyOptions, StepInfo } from '../engine'
import {
  type JobHandle,
  type Log,
  refuseBadWait,
  type RunOutput,
  TRIGGER_AND_WAIT_OPTIONS,
  WAIT_OPTIONS,
  type WaitOptions,
} from '../client'
import { createMemoryStorage } from '../memory'
import type { FakeClock } from './fake-clock'
import { AwaitedSignals } from './jobs/awaited-signals'
import { type StepStubs, StubbedSteps } from './jobs/step-stubs'
import { createTestProcess, type TestProcess } from './jobs/test-process'
import { createTestClock, type Goal, TimeMachine } from './jobs/time-machine'

/** What `createTestDurably` takes. */
export interface TestDurablyOptions<TJobs extends JobRecord>
  extends Pick<DurablyOptions, 'concurrency' | 'maxCrashes' | 'logger'> {
  /** Jobs as values (`defineJob`), those that they trigger included. */
  readonly jobs: TJobs
  /** What runs instead of the bodies of steps, by the name of the step, or by the job and then the step. */
  readonly steps?: StepStubs | undefined
  /** Used on each instance, in this order, outside of the stubs. */
  readonly plugins?: readonly Plugin[] | undefined
  /** Where the clock stands at first. Default: now, so that what jobs compute from `Date.now()` is not in the past. */
  readonly startAt?: Date | string | undefined
  /** Let `close()` not mind stubs that no step asked for: for stubs that several tests share. */
  readonly allowUnusedStubs?: boolean | undefined
  /** How often the clock may jump for one `runToEnd` before it counts as endless. Default 1000. */
  readonly maxJumps?: number | undefined
  /**
   * Real milliseconds in which nothing happens before a body in flight counts as one that never settles. Default 4000:
   * less than test runners give a test.
   */
  readonly maxQuietMs?: number | undefined
}

const OPTIONS: OptionNames<TestDurablyOptions<JobRecord>> = {
  jobs: true,
  steps: true,
  plugins: true,
  startAt: true,
  allowUnusedStubs: true,
  maxJumps: true,
  maxQuietMs: true,
  concurrency: true,
  maxCrashes: true,
  logger: true,
}

/** A run that has ended. */
export type EndedRun<TOutput = unknown> = Extract<Run<TOutput>, { readonly status: EndedStatus }>

/** A run, its id, or the promise of one, as `trigger` returns it. */
export type RunUnderTest<TOutput = unknown> = Run<TOutput> | string | Promise<Run<TOutput> | string>

/** Jobs in the memory of a test, with a clock that waits for nothing. */
export interface TestDurably<TJobs extends JobRecord = JobRecord> {
  /** The instance; after `crash()` another one on the same storage. */
  readonly durably: Durably
  /** A handle for each job. `triggerAndWait` and `wait` execute the run; they need no `start()`. */
  readonly jobs: Handles<TJobs>
  /** Executes what is due and jumps from due time to due time until the run has ended, however. */
  runToEnd<TOutput>(run: RunUnderTest<TOutput>): Promise<EndedRun<TOutput>>
  /** Executes until the run waits for the signal, then sends it. */
  signalWhenWaiting(run: RunUnderTest, name: string, payload?: unknown): Promise<void>
  /** Lets so many milliseconds pass, and everything happen that comes due in them. With 0: what is due already. */
  advance(ms: number): Promise<void>
  /** The time in the test. */
  now(): Date
  /**
   * The process dies here and now, in the body of a step for example: nothing it does from then on is kept, and another
   * one goes on when the lease has run out.
   */
  crash(): void
  steps(run: Run | string): Promise<Step[]>
  logs(run: Run | string): Promise<Log[]>
  /** Everything that was told of the run, in its order. */
  events(run: Run | string): Promise<StoredEvent[]>
  /**
   * Uninstalls the plugins, and rejects with `UnusedStubError` if no step asked for one of the stubs. Nothing else is
   * left to close: no timer, no file and no connection is open.
   */
  close(): Promise<void>
}

/** Jobs for tests: in memory, with a clock that jumps to the next instant at which something is due. */
export function createTestDurably<TJobs extends JobRecord>(options: TestDurablyOptions<TJobs>): TestDurably<TJobs> {
  requireOptions(options)
  const clock = createTestClock(startOf(options.startAt))
  const stage = createStage(options, clock)
  const { machine, current } = stage
  const runToEnd: TestDurably['runToEnd'] = async <TOutput>(run: RunUnderTest<TOutput>) =>
    (await reachEnd<TOutput>(stage, idOf(await run))) as EndedRun<TOutput>
  return {
    get durably() {
      return current().durably
    },
    jobs: Object.fromEntries(
      Object.keys(options.jobs).map((key) => [key, handleOf(stage, () => current().handles[key] as JobHandle)]),
    ) as Handles<TJobs>,
    runToEnd,
    signalWhenWaiting: (run, name, payload) => reachWait({ stage, run, name, payload }),
    async advance(ms) {
      if (!(ms >= 0 && Number.isFinite(ms))) {
        throw new InvalidOptionError(`advance() needs a number of milliseconds from 0, not ${ms}.`)
      }
      await machine.advance(ms)
    },
    now: () => new Date(clock.now()),
    crash: stage.crash,
    steps: (run) => current().durably.getSteps(idOf(run)),
    logs: (run) => current().durably.getLogs(idOf(run)),
    events: (run) => current().durably.getEvents(idOf(run)),
    async close() {
      await current().durably.close()
      if (options.allowUnusedStubs !== true) stage.stubs.refuseUnused()
    },
  }
}

/** A stub that is not found would let a body run in earnest. */
function requireOptions(options: TestDurablyOptions<JobRecord>): void {
  refuseUnknownOptions('createTestDurably()', options, OPTIONS)
  const { jobs, plugins = [], maxJumps = 1, maxQuietMs = 1 } = options
  if (typeof jobs !== 'object' || jobs === null || !Object.values(jobs).every(isDeclaration)) {
    throw new InvalidOptionError('createTestDurably() needs jobs made by defineJob(), as in { jobs: { order } }.')
  }
  if (!Array.isArray(plugins)) throw new InvalidOptionError('plugins must be a list.')
  requireInteger('maxJumps', maxJumps, { from: 1 })
  requireDuration('maxQuietMs', maxQuietMs)
}

/** What the parts of a test share. */
interface Stage<TJobs extends JobRecord = JobRecord> {
  readonly clock: FakeClock
  readonly machine: TimeMachine
  readonly signals: AwaitedSignals
  readonly stubs: StubbedSteps
  /** Called at each event of a run. */
  readonly watchers: Set<(runId: string) => void>
  current(): TestProcess<TJobs>
  crash(): void
}

function createStage<TJobs extends JobRecord>(options: TestDurablyOptions<TJobs>, clock: FakeClock): Stage<TJobs> {
  const { jobs, steps = {}, plugins = [], maxJumps = 1000, maxQuietMs = 4000 } = options
  const { concurrency, maxCrashes, logger } = options
  const stubs = new StubbedSteps(
    steps,
    Object.values(jobs).map(({ name }) => name),
  )
  const storage = createMemoryStorage({ now: () => clock.now() })
  const signals = new AwaitedSignals(storage, () => living.durably)
  const watchers: Stage['watchers'] = new Set()
  const machine = new TimeMachine({
    clock,
    maxJumps,
    maxQuietMs,
    whereQuiet: () => whereOf(stubs.inProgress()),
    drain: () => Promise.race([living.durably.runUntilIdle(), living.died.then(() => null)]),
    settleSignals: () => signals.wereSettled(),
  })
  function hear(event: DurablyEvent): void {
    machine.noteEvent()
    if (event.type === 'step:start') void signals.look()
    if (!('runId' in event)) return
    for (const watch of watchers) watch(event.runId)
  }
  function open(): TestProcess<TJobs> {
    const all = [HISTORY, ...plugins, stubs.plugin()]
    const opened = createTestProcess({
      jobs,
      storage,
      clock,
      plugins: all,
      options: { concurrency, maxCrashes, logger },
    })
    for (const type of EVENT_TYPES) opened.durably.on(type, (event) => hear(event))
    return opened
  }
  let living = open()
  return {
    clock,
    machine,
    signals,
    stubs,
    watchers,
    current: () => living,
    crash() {
      living.kill()
      living = open()
    },
  }
}

/** The run when it has ended, or when it has been waited for as long as the options say. */
async function reachEnd<TOutput>(stage: Stage, id: string, options: WaitOptions = {}): Promise<Run<TOutput>> {
  const { clock, machine, watchers, current } = stage
  const { timeout, signal } = options
  const dueAt = timeout === undefined ? undefined : clock.now() + timeout
  const read = async () => {
    const run = await current().durably.getRun(id)
    if (run === null) throw NotFoundError.run(id)
    return run as Run<TOutput>
  }
  const isGivenUp = () => signal?.aborted === true || (dueAt !== undefined && clock.now() >= dueAt)
  const isReached = async () => isEnded((await read()).status) || isGivenUp()
  let look: (runId: string) => void = () => {}
  let giveUp: () => void = () => {}
  const reached = new Promise<void>((resolve) => {
    giveUp = resolve
    look = (runId) => {
      if (runId === id) void isReached().then((isOver) => isOver && resolve(), resolve)
    }
  })
  watchers.add(look)
  signal?.addEventListener('abort', giveUp)
  try {
    await machine.reach({ reached, isReached, dueAt, explain: () => current().durably.explain(id) })
  } finally {
    watchers.delete(look)
    signal?.removeEventListener('abort', giveUp)
  }
  return read()
}

/** Where nothing happens. */
function whereOf(steps: readonly StepInfo[]): string {
  const names = steps.map(({ stepName, jobName, runId }) => `in step "${stepName}" of job "${jobName}" (${runId})`)
  return names.length === 0 ? 'outside of steps' : names.join(' and ')
}

interface ReachWaitParams {
  readonly stage: Stage
  readonly run: RunUnderTest
  readonly name: string
  readonly payload: unknown
}

async function reachWait({ stage, run, name, payload }: ReachWaitParams): Promise<void> {
  const { machine, signals, current } = stage
  let isSettled = false
  // Before it is this one's turn: what others let happen may be what it waits for.
  const sending = Promise.resolve(run).then((given) => signals.add({ runId: idOf(given), name, payload }))
  const reached = sending.finally(() => {
    isSettled = true
  })
  const goal: Goal = {
    reached: reached.catch(() => {}),
    isReached: async () => isSettled,
    explain: async () => current().durably.explain(idOf(await run)),
  }
  await machine.reach(goal)
  await sending
}

const HISTORY: Plugin = { name: 'history-of-the-test', records: { events: true, logs: true } }

function startOf(startAt: Date | string | undefined): number {
  const start = startAt === undefined ? Date.now() : new Date(startAt).getTime()
  if (!Number.isNaN(start)) return start
  throw new InvalidOptionError(`startAt must be a Date or an ISO 8601 text, not ${String(startAt)}.`)
}

function idOf(run: Run | string): string {
  return typeof run === 'string' ? run : run.id
}

/** The handle of whichever process lives, whose waits let time pass. */
function handleOf(stage: Stage, current: () => JobHandle): JobHandle {
  async function ended(id: string, options: WaitOptions): Promise<RunOutput<unknown>> {
    const run = await reachEnd(stage, id, options)
    if (isEnded(run.status)) return current().wait(id)
    options.signal?.throwIfAborted()
    throw new TimeoutError(`Run ${id} has not ended within ${options.timeout} ms of the time in this test. It goes on.`)
  }
  return {
    name: current().name,
    trigger: (payload, options) => current().trigger(payload, options),
    async triggerAndWait(payload, given = {}) {
      refuseUnknownOptions('triggerAndWait()', given, TRIGGER_AND_WAIT_OPTIONS)
      const { timeout, signal, ...options } = given
      refuseBadWait({ timeout, signal })
      const { id } = await current().trigger(payload, options)
      return ended(id, { timeout, signal })
    },
    async wait(id, options = {}) {
      refuseUnknownOptions('wait()', options, WAIT_OPTIONS)
      refuseBadWait(options)
      return ended(id, options)
    },
    batchTrigger: (items) => current().batchTrigger(items),
    getRun: (id) => current().getRun(id),
    getRuns: (filter) => current().getRuns(filter),
  }
}
