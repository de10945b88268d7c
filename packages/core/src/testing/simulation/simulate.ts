import { createMemoryStorage } from '../../memory'
import type { Storage } from '../../port'
import { Callers } from './callers'
import type { Coverage } from './faults'
import { Fleet } from './fleet'
import { restOf, withForgedRests } from './forged-rests'
import { createImpostor } from './impostor'
import { judgeStories } from './judge-streams'
import { Model } from './model'
import { isSettled } from './model-queries'
import { waitingRows } from './model-run'
import { createPlan } from './plan'
import { createRandom } from './random'
import { startProcess, WALL_START_MS } from './sim-process'
import { createSteward } from './steward'
import { createStorageClock } from './storage-clock'
import { createTracer } from './trace'
import { must, Violation } from './violation'
import { Wire } from './wire'
import { createWiredStorage } from './wired-storage'
import { Witness } from './witness'
import { createWorld, type World } from './world'

/** Which seed to play, and on what. */
export interface SimulateOptions {
  /** The same seed is the same story, as long as engine and simulation are the same. */
  readonly seed: number
  /** The storage under test, empty and migrated, on this clock. Default: the memory storage. */
  readonly createStorage?: (now: () => number) => Storage | Promise<Storage>
  /** Of the storage under test: its time is set back with the clock. By default it goes on from where it was. */
  readonly readsClockAsItIs?: boolean
  /** Puts something between an engine and its storage: a fault that should be found. */
  readonly wrapForEngine?: (storage: Storage) => Storage
  /** Hears what happens, line by line. */
  readonly trace?: (line: string) => void
}

/** What one seed came to. */
export interface SimulationReport {
  readonly seed: number
  /** What was found to be wrong first, or `null`. */
  readonly violation: string | null
  /** Calls of the storage and of the API. */
  readonly operations: number
  readonly bodyStarts: number
  readonly zombieStarts: number
  readonly virtualMs: number
  /** How often each fault met each transition. */
  readonly coverage: Coverage
  /** Alike for two runs of one seed, down to every answer. */
  readonly fingerprint: number
}

/** So many leases after the last fault everything must have ended. */
const PATIENCE_LEASES = 50

/** More waits than these are in no script. */
const MOST_ROUNDS = 20

/** A hundred times what a seed takes: something goes round in a circle. */
const MOST_STEPS = 50_000

/** Callers go on until there were so many, or a seed would tell too little. */
const LEAST_OPERATIONS = 100

/**
 * Plays one seed: several processes with real engines, callers of their API, virtual time, one storage, and trouble
 * around every call of it; after each call everything the storage shows is compared with a model of its own.
 */
export async function simulate(options: SimulateOptions): Promise<SimulationReport> {
  const world = createWorld(createRandom(options.seed))
  const simulation = await createSimulation(world, options)
  try {
    await play(simulation)
  } catch (error) {
    if (!(error instanceof Violation)) throw error
    simulation.verdict.violation ??= error.message
  } finally {
    world.close()
  }
  return simulation.report()
}

interface Simulation {
  readonly world: World
  readonly inner: Storage
  readonly model: Model
  readonly plan: ReturnType<typeof createPlan>
  readonly fleet: Fleet
  readonly callers: Callers
  readonly impostor: ReturnType<typeof createImpostor>
  readonly steward: ReturnType<typeof createSteward>
  readonly verdict: { violation: string | null }
  calm(): void
  operations(): number
  report(): SimulationReport
}

async function createSimulation(world: World, options: SimulateOptions): Promise<Simulation> {
  const {
    seed,
    createStorage = (now: () => number) => createMemoryStorage({ now }),
    wrapForEngine = (storage) => storage,
  } = options
  const plan = createPlan(world.random)
  const verdict: { violation: string | null } = { violation: null }
  const coverage: Coverage = new Map()
  const tracer = createTracer(world, options.trace)
  const goesBack = options.readsClockAsItIs === true
  const clock = createStorageClock({ world, startMs: WALL_START_MS, goesBack })
  const inner = await createStorage(clock.read)
  const model = new Model(clock.now, clock.furthest)
  const judge = (judgement: () => void) => {
    try {
      judgement()
    } catch (error) {
      verdict.violation ??= error instanceof Violation ? error.message : String(error)
    }
  }
  const witness = new Witness({ model, keepsHistory: plan.keepsHistory, report: judge })
  const wire: Wire = new Wire({ world, plan, inner, model, coverage, mischief: () => fleet, trace: tracer.trace })
  const createId = createIds()
  const restMs = restOf(seed)
  const fleet: Fleet = new Fleet({
    world,
    plan,
    trace: tracer.trace,
    jumpStorageClock: clock.jump,
    start: (processOptions) =>
      startProcess({
        world,
        options: processOptions,
        createId,
        storageFor: (process) =>
          wrapForEngine(withForgedRests(createWiredStorage({ wire, inner, model, witness, process }), restMs)),
        onBodyStart: (process, start) => judge(() => witness.bodyStarted(process.number, start)),
        onLateChunk: (what) => judge(() => must(false, () => what)),
      }),
  })
  const callers = new Callers({ world, model, fleet, judge, trace: tracer.trace })
  const operations = () => wire.calls + callers.actions
  return {
    world,
    inner,
    model,
    plan,
    fleet,
    callers,
    verdict,
    impostor: createImpostor({ world, wire, inner, model, witness }),
    steward: createSteward({ world, wire, inner, model }),
    calm() {
      wire.calm()
      fleet.calm()
    },
    operations,
    report: () => ({
      seed,
      violation: verdict.violation,
      operations: operations(),
      bodyStarts: witness.bodyStarts,
      zombieStarts: witness.zombieStarts,
      virtualMs: world.now(),
      coverage,
      fingerprint: tracer.fingerprint(),
    }),
  }
}

async function play(simulation: Simulation): Promise<void> {
  const { world, plan, inner, callers, impostor, steward, verdict, model, fleet } = simulation
  const { random } = world
  let isBusy = true
  const everyMs = (plan.busyMs / plan.actions) * 2
  const act = async () => {
    if (random.chance(0.2)) await impostor.strike()
    if (random.chance(0.06)) await steward.act()
    callers.act()
    if (world.now() < plan.busyMs || simulation.operations() < LEAST_OPERATIONS)
      world.schedule(random.int(everyMs), null, act)
    else isBusy = false
  }
  world.schedule(0, null, act)
  const go = async (until: () => boolean, limitMs: number) => {
    const end = world.now() + limitMs
    let steps = 0
    while (verdict.violation === null && !until()) {
      steps += 1
      if (steps > MOST_STEPS) throw new Violation(`no end in sight: ${describeActive(model)}`)
      if (world.now() > end || !(await world.step())) return false
    }
    return true
  }
  await go(() => !isBusy, Number.POSITIVE_INFINITY)
  simulation.calm()
  const limitMs = PATIENCE_LEASES * plan.leaseMs
  const all = () => [...model.runs.values()]
  const settled = () => all().every((run) => isSettled(model.runs, run))
  await steward.unparkAll()
  for (let round = 0; all().some((run) => run.finishedAt === null); round++) {
    await go(() => fleet.alive().length > 0, limitMs)
    if (round > 0) await go(callers.answerWaits(), limitMs)
    const isQuiet = await go(settled, limitMs)
    if (!isQuiet || round > MOST_ROUNDS) throw new Violation(`not everything ended: ${describeActive(model)}`)
    if (verdict.violation !== null) return
  }
  if (plan.keepsHistory) await judgeStories(inner, all())
  fleet.stopAll()
  if (!(await go(() => fleet.isEmpty, limitMs))) throw new Violation('a worker with nothing to do did not stop')
}

function describeActive(model: Model): string {
  const active = [...model.runs.values()].filter((run) => run.finishedAt === null)
  return active
    .map((run) => {
      const rows = waitingRows(run).map(({ name, kind, waitName }) => ` for ${kind} ${name} (${waitName})`)
      const unread = run.unread.map(({ position, name }) => `, has signal ${position} ${name}`)
      return [run.wanted.id, ` is ${run.status}`, run.owner === null ? '' : ` (${run.owner})`, ...rows, ...unread].join(
        '',
      )
    })
    .join('; ')
}

/** Ids that only grow, short ones to read. */
function createIds(): () => string {
  let count = 0
  return () => {
    count += 1
    return `id${String(count).padStart(6, '0')}`
  }
}
