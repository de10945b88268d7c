import type { Plan } from './plan'
import { EVERY_JOB, type JobName, type ProcessOptions, type SimProcess } from './sim-process'
import type { Mischief } from './wire'
import type { Trace } from './trace'
import type { World } from './world'

export interface FleetParams {
  readonly world: World
  readonly plan: Plan
  readonly start: (options: ProcessOptions) => SimProcess
  readonly jumpStorageClock: (byMs: number) => void
  readonly trace: Trace
}

/** The processes that are there. Who dies or stops is followed by another, sometimes under the same name. */
export class Fleet implements Mischief {
  readonly #params: FleetParams
  readonly #all = new Set<SimProcess>()
  readonly #gone = new Set<string>()
  readonly #resumes = new Map<SimProcess, () => void>()
  #count = 0
  #isCalm = false
  #isClosing = false

  constructor(params: FleetParams) {
    this.#params = params
    const { random } = params.world
    for (let worker = 0; worker < params.plan.workers; worker++) {
      const knowsAll = worker === 0 || random.chance(0.7)
      this.#spawn(null, knowsAll ? EVERY_JOB : [random.pick(EVERY_JOB)])
    }
  }

  /** Not the paused ones. */
  alive(): readonly SimProcess[] {
    return [...this.#all].filter((process) => process.state === 'alive')
  }

  /** Names that no process has any more. */
  deadWorkerIds(): readonly string[] {
    return [...this.#gone]
  }

  get isEmpty(): boolean {
    return this.#all.size === 0
  }

  kill(process: SimProcess): void {
    if (process.state === 'gone') return
    this.#params.trace(process, 'dies')
    this.#leave(process)
  }

  pause(process: SimProcess, ms: number): void {
    const { world, plan, trace } = this.#params
    if (process.state !== 'alive') return
    trace(process, `pauses for ${Math.round(ms)} ms`)
    process.state = 'paused'
    const pausedAt = world.now()
    const resume = () => {
      if (this.#resumes.get(process) !== resume) return
      this.#resumes.delete(process)
      trace(process, 'goes on')
      if (plan.pauseStopsClock) process.freeze(world.now() - pausedAt)
      process.state = 'alive'
      world.release(process)
    }
    this.#resumes.set(process, resume)
    world.schedule(ms, null, resume)
  }

  jumpClock(process: SimProcess): void {
    const { world, plan, trace, jumpStorageClock } = this.#params
    const byMs = world.random.between(-3_600_000, 3_600_000)
    trace(process, `wall clock jumps by ${byMs} ms`)
    process.setWall(byMs)
    if (plan.storageClockJumps) jumpStorageClock(world.random.between(-2 * plan.leaseMs, 2 * plan.leaseMs))
  }

  wakeAll(): void {
    for (const process of this.alive()) if (this.#params.world.random.chance(0.7)) process.durably.wake()
  }

  stop(process: SimProcess): void {
    const timeout = this.#params.world.random.pick([undefined, 0, 300, 3000])
    this.#params.trace(process, `stops (timeout ${timeout})`)
    const left = () => process.state !== 'gone' && this.#leave(process)
    process.durably.stop({ timeout }).then(left, left)
  }

  /** The paused go on, and drains have all the time they need. */
  calm(): void {
    this.#isCalm = true
    for (const resume of [...this.#resumes.values()]) resume()
  }

  /** Nobody follows any more. */
  stopAll(): void {
    this.#isClosing = true
    for (const process of this.#all) void process.durably.stop().then(() => this.#leave(process))
  }

  #spawn(workerId: string | null, jobs: readonly JobName[]): void {
    if (this.#isClosing) return
    const { world, plan, start, trace } = this.#params
    const number = this.#count + 1
    this.#count = number
    const isServerless = workerId === null && number > 1 && world.random.chance(0.15)
    const process = start({
      number,
      workerId: workerId ?? `w${number}`,
      jobs,
      concurrency: world.random.between(1, 3),
      leaseMs: plan.leaseMs,
      maxCrashes: plan.maxCrashes,
      keepsHistory: plan.keepsHistory,
      wallOffsetMs: world.random.between(-3_600_000, 3_600_000),
    })
    this.#gone.delete(process.workerId)
    this.#all.add(process)
    trace(process, `starts as ${process.workerId}${isServerless ? ', serverless' : ''}, knows ${jobs}`)
    if (isServerless) this.#drain(process)
    else process.durably.start()
  }

  #drain(process: SimProcess): void {
    const { world } = this.#params
    const again = () => world.schedule(world.random.between(200, 2000), process, () => this.#drain(process))
    // A step longer than every budget would never end.
    const budgetMs = this.#isCalm ? undefined : world.random.between(500, 6000)
    process.durably.runUntilIdle({ budgetMs }).then(again, again)
  }

  #leave(process: SimProcess): void {
    const { world, plan } = this.#params
    process.state = 'gone'
    process.held.length = 0
    this.#resumes.delete(process)
    this.#all.delete(process)
    this.#gone.add(process.workerId)
    if (this.#isClosing) return
    const inheritedId = world.random.chance(0.3) ? process.workerId : null
    const jobs = EVERY_JOB.filter((name) => process.jobs[name] !== undefined)
    world.schedule(world.random.int(plan.leaseMs * 2), null, () => this.#spawn(inheritedId, jobs))
  }
}
