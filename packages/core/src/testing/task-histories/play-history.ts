import { createMemoryStorage } from '../../memory'
import type { Storage } from '../../port'
import { createFakeClock, type FakeClock } from '../fake-clock'
import { createRandom, type Random } from '../simulation/random'
import { must, Violation } from '../simulation/violation'
import { Callers } from './callers'
import { isEnded, judgeQueue } from './judge-queue'
import { Ledger } from './ledger'
import { QueueFleet } from './queue-fleet'
import type { QueueProcess, QueueSettings } from './queue-process'
import { retentionMs } from './retention-time'
import { settle } from './settle'
import { makeKinds, type TaskKind } from './task-kinds'
import type { TaskMutant } from './task-mutant'
import { Witness } from './witness'

export interface PlayHistoryOptions extends TaskMutant {
  /** The same seed is the same history. */
  readonly seed: number
  /** Hears what happens, line by line. */
  readonly trace?: (line: string) => void
}

export interface HistoryReport {
  readonly seed: number
  /** What was found to be wrong first, or `null`. */
  readonly violation: string | null
  /** How often each event of a task was heard. */
  readonly heard: ReadonlyMap<string, number>
}

/** What happens to a queue. */
const ACTIONS = {
  pass: 24,
  enqueue: 20,
  redrive: 3,
  redriveAll: 2,
  remove: 3,
  purge: 4,
  pause: 3,
  resume: 4,
  start: 5,
  stop: 3,
  drain: 5,
  crash: 4,
  open: 5,
} as const

const DEADLY_ACTIONS = { ...ACTIONS, crash: 40, open: 60, pass: 60 } as const

/** After the last trouble everything ends within this time. */
const PATIENCE_MS = 900_000

/** One history of tasks: queue objects on one storage, their callers and handlers, trouble, and time. */
export async function playHistory(options: PlayHistoryOptions): Promise<HistoryReport> {
  const history = createHistory(options)
  try {
    await play(history)
  } catch (error) {
    if (!(error instanceof Violation)) throw error
    history.verdict.violation ??= error.message
  }
  return { seed: options.seed, violation: history.verdict.violation, heard: history.witness.heard }
}

interface History {
  readonly random: Random
  readonly clock: FakeClock
  readonly settings: QueueSettings
  /** Processes die more often than not, so that a task loses several of them. */
  readonly isDeadly: boolean
  readonly kinds: readonly TaskKind[]
  readonly ledger: Ledger
  readonly witness: Witness
  readonly fleet: QueueFleet
  readonly callers: Callers
  /** Executes nothing. */
  readonly observer: QueueProcess
  readonly mostProcesses: number
  readonly verdict: { violation: string | null }
  readonly say: (what: string) => void
}

function createHistory(options: PlayHistoryOptions): History {
  const { seed, trace = () => {}, createStorage = createEndlessStorage } = options
  const random = createRandom(seed)
  const clock = createFakeClock(undefined, settle)
  const isDeadly = random.chance(0.2)
  const settings = makeSettings(random, isDeadly)
  const kinds = makeKinds(random)
  const ledger = new Ledger()
  const witness = new Witness({ ledger, kinds, settings })
  const verdict: History['verdict'] = { violation: null }
  const say = (what: string) => trace(`${String(clock.monotonic()).padStart(6)} ${what}`)
  const judge = (judgement: () => void) => {
    try {
      judgement()
    } catch (error) {
      verdict.violation ??= error instanceof Violation ? error.message : String(error)
    }
  }
  const storage = createStorage(() => clock.now())
  const fleet = new QueueFleet({
    random,
    clock,
    storage,
    settings,
    kinds,
    ledger,
    witness,
    mutant: options,
    say,
    judge,
  })
  say(`${JSON.stringify({ settings, kinds })}`)
  return {
    random,
    clock,
    settings,
    isDeadly,
    kinds,
    ledger,
    witness,
    fleet,
    callers: new Callers({ random, ledger, kinds, say }),
    observer: fleet.openObserver(),
    mostProcesses: random.between(1, 2),
    verdict,
    say,
  }
}

/** What is kept is the queue's to say. */
function createEndlessStorage(now: () => number): Storage {
  return createMemoryStorage({ now, keepEnded: Number.POSITIVE_INFINITY })
}

function makeSettings(random: Random, isDeadly: boolean): QueueSettings {
  const limits = () => ({
    age: random.pick([Number.POSITIVE_INFINITY, 5000, 40_000]),
    count: random.pick([Number.POSITIVE_INFINITY, 0, 2, 5]),
  })
  return {
    leaseMs: isDeadly ? 4000 : random.pick([4000, 12_000]),
    maxCrashes: isDeadly ? 5 : random.pick([5, 2, 1]),
    keep: { succeeded: limits(), dead: limits() },
  }
}

async function play(history: History): Promise<void> {
  const { random, mostProcesses } = history
  const actions = history.isDeadly ? DEADLY_ACTIONS : ACTIONS
  for (let count = 0; count < mostProcesses; count++) openAnother(history)
  for (let left = random.between(12, history.isDeadly ? 40 : 24); left > 0; left--) {
    await act(history, random.weighted<keyof typeof ACTIONS>(actions))
    await check(history)
  }
  await repair(history)
  await letAllEnd(history)
  await letRetentionWork(history)
  await stopAll(history)
}

async function act(history: History, action: keyof typeof ACTIONS): Promise<void> {
  const { random, fleet, callers, kinds, observer, mostProcesses, ledger } = history
  const process = random.pickAny(fleet.alive())
  if (action === 'pass') return pass(history, random.between(0, random.pick([100, 1000, 4000, 12_000])))
  if (process === undefined || action === 'open') {
    if (fleet.alive().length < mostProcesses) openAnother(history)
    return
  }
  const type = random.chance(0.7) ? random.pickAny(kinds)?.type : undefined
  switch (action) {
    case 'start':
      fleet.start(process)
      break
    case 'stop':
      void fleet.stop(process, random.pick([undefined, 0, 400, 3000]))
      break
    case 'drain':
      void fleet.drain(process, random.pick([undefined, 0, 300, 4000]))
      break
    case 'crash':
      fleet.crash(fleet.alive().find((each) => ledger.executing(each).length > 0) ?? process)
      break
    case 'pause':
    case 'resume':
      fleet[action](process, type)
      break
    default:
      // Who asks one that dies gets no answer.
      await callers[action](random.chance(0.2) || process.isDoomed ? observer : process)
  }
}

function openAnother({ fleet, random }: History): void {
  const process = fleet.open()
  if (random.chance(0.75)) fleet.start(process)
}

async function pass({ clock, say }: History, ms: number): Promise<void> {
  say(`${ms} ms pass`)
  await clock.advance(ms)
}

async function check(history: History, isThorough = history.random.chance(0.2)): Promise<void> {
  const { ledger, kinds, settings, observer, fleet, clock, verdict } = history
  await settle()
  must(verdict.violation === null, () => `${verdict.violation}`)
  const { queue } = observer
  await judgeQueue({ ledger, kinds, settings, queue, isThorough, processes: fleet.alive(), nowMs: clock.now() })
  must(verdict.violation === null, () => `${verdict.violation}`)
}

/** There are as many queues as there should be, all of them take everything, and no handler goes on for ever. */
async function repair(history: History): Promise<void> {
  const { fleet, mostProcesses, clock, random, callers, observer } = history
  fleet.calm()
  while (fleet.alive().length < mostProcesses) openAnother(history)
  const stopped = fleet.alive().map((process) => fleet.stop(process, 0))
  await clock.advance(1)
  await mustBeQuick(stopped)
  await check(history)
  if (random.chance(0.3)) await callers.redriveAll(observer)
  for (const process of fleet.alive()) {
    fleet.resume(process, undefined)
    fleet.start(process)
  }
}

async function letAllEnd(history: History): Promise<void> {
  const { ledger, random, clock } = history
  const until = clock.monotonic() + PATIENCE_MS
  for (;;) {
    const open = ledger.all().filter(({ state }) => !isEnded(state))
    if (open.length === 0) return
    const what = () => open.map(({ id, state }) => `${id} is ${state}`).join(', ')
    must(clock.monotonic() < until, () => `not everything ended: ${what()}`)
    await pass(history, random.between(1000, 8000))
    await check(history)
  }
}

async function letRetentionWork(history: History): Promise<void> {
  const roundMs = retentionMs(history.settings)
  // A minute of nothing is long to play.
  if (roundMs > 10_000 && !history.random.chance(0.1)) return
  await pass(history, 3 * roundMs)
  await check(history)
}

async function stopAll(history: History): Promise<void> {
  const { fleet, clock } = history
  const stopped = fleet.alive().map((process) => fleet.stop(process, undefined))
  await clock.advance(1)
  await mustBeQuick(stopped)
  await check(history, true)
}

async function mustBeQuick(stopped: readonly Promise<void>[]): Promise<void> {
  let left = stopped.length
  for (const each of stopped) void each.then(() => (left -= 1))
  await settle()
  must(left === 0, () => `${left} queues with nothing to do did not stop`)
}
