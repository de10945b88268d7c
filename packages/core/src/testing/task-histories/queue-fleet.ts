import { TASK_EVENT_TYPES, type TaskContext, type TaskQueue } from '../../queue/index'
import type { Storage } from '../../port'
import type { FakeClock } from '../fake-clock'
import type { Random } from '../simulation/random'
import { must } from '../simulation/violation'
import { makeDeed, perform } from './deed'
import { bookLastDeed, bookUnsent } from './last-deed'
import type { Ledger } from './ledger'
import { openQueue, type QueueProcess, type QueueSettings } from './queue-process'
import { settle } from './settle'
import { optionsOf, type TaskKind } from './task-kinds'
import type { TaskMutant } from './task-mutant'
import type { Witness } from './witness'

export interface QueueFleetParams {
  readonly random: Random
  readonly clock: FakeClock
  readonly storage: Storage
  readonly settings: QueueSettings
  readonly kinds: readonly TaskKind[]
  readonly ledger: Ledger
  readonly witness: Witness
  readonly mutant: TaskMutant
  readonly say: (what: string) => void
  /** For what is seen inside a queue, which would take an exception for one of its listeners or handlers. */
  readonly judge: (judgement: () => void) => void
}

/** So long may what was interrupted go on until it is given up. */
const GRACE_MS = 5000

/** The queue objects that are there, each as in a process of its own. */
export class QueueFleet {
  readonly #params: QueueFleetParams
  readonly #processes: QueueProcess[] = []
  #opened = 0
  #ids = 0
  #isCalm = false

  constructor(params: QueueFleetParams) {
    this.#params = params
  }

  alive(): readonly QueueProcess[] {
    return this.#processes.filter(({ isAlive, isDying }) => isAlive && !isDying)
  }

  /** From now on no process dies, and no handler goes on for ever. */
  calm(): void {
    this.#isCalm = true
    for (const process of this.alive()) {
      process.isDoomed = false
      process.dieAt(null)
    }
  }

  open(): QueueProcess {
    const process = this.#create()
    this.#processes.push(process)
    this.#params.say(`process ${process.number} is there, with ${process.concurrency} slots`)
    return process
  }

  /** One that executes nothing: it is there to be asked. */
  openObserver(): QueueProcess {
    return this.#create()
  }

  start(process: QueueProcess): void {
    const { say, clock } = this.#params
    say(`starts process ${process.number}`)
    if (!process.isStarted) process.startedAt = clock.monotonic()
    process.isStarted = true
    process.isStopped = false
    process.queue.start()
  }

  /** Resolves when the queue has stopped; nothing of what it had begun is left then. */
  async stop(process: QueueProcess, timeout: number | undefined): Promise<void> {
    const { say, clock, ledger, judge } = this.#params
    say(`stops process ${process.number} (timeout ${timeout})`)
    const begunBefore = clock.monotonic()
    const from = begunBefore + (timeout ?? Number.POSITIVE_INFINITY)
    process.isStarted = false
    process.isDraining = false
    process.stops.push({ begunBefore, from })
    await process.queue.stop({ timeout })
    if (!process.isStarted) process.isStopped = true
    judge(() => {
      const left = ledger.executing(process).find(({ current }) => (current?.startedAt ?? 0) < begunBefore)
      must(left === undefined, () => `process ${process.number} has stopped, and still executes ${left?.id}`)
      const lateMs = clock.monotonic() - from - GRACE_MS
      must(lateMs <= 0, () => `process ${process.number} stopped ${lateMs} ms too late`)
    })
  }

  /** Resolves when the queue has done what it could; nothing of what it had begun is left then. */
  async drain(process: QueueProcess, budgetMs: number | undefined): Promise<void> {
    const { say, clock, ledger, judge } = this.#params
    if (process.isStarted || process.drains > 0) return
    say(`runs process ${process.number} until it is idle (budget ${budgetMs})`)
    // What a queue that stops still has in hand is not this call's to end.
    const isOwn = ledger.executing(process).length === 0
    const over = clock.monotonic() + (budgetMs ?? Number.POSITIVE_INFINITY)
    process.isDraining = true
    process.drains += 1
    process.budgetUntil = over
    process.drainedBy = isOwn ? over + GRACE_MS : Number.POSITIVE_INFINITY
    process.stops.push({ begunBefore: over, from: over })
    const { ran } = await process.queue.runUntilIdle({ budgetMs })
    say(`process ${process.number} has run ${ran}`)
    process.drains -= 1
    const isJudged = isOwn && !process.isStarted
    process.isDraining = false
    judge(() => {
      const [left] = ledger.executing(process)
      must(!isJudged || left === undefined, () => `process ${process.number} is idle, and still executes ${left?.id}`)
    })
  }

  /** Now, or at one of its next calls to the storage. */
  crash(process: QueueProcess): void {
    const { random, say } = this.#params
    if (random.chance(0.4)) {
      this.#die(process)
      return
    }
    const name = random.pick(['claim', 'commit', 'recover'] as const)
    const last = { name, inCalls: random.between(1, 3), arrives: random.chance(0.7) }
    say(`process ${process.number} will die: ${JSON.stringify(last)}`)
    process.isDoomed = true
    process.dieAt(last)
  }

  #die(process: QueueProcess): void {
    const { ledger, say } = this.#params
    const executing = ledger.executing(process)
    say(`process ${process.number} dies with ${executing.map(({ id }) => id)}`)
    for (const { current } of executing) if (current !== null) current.over = 'crashed'
    process.kill()
  }

  /** Dead for want of attempts, and not said to be: the process would have read first how many there were. */
  async #bookUnsaid(process: QueueProcess): Promise<void> {
    const { storage, clock, judge, ledger, witness } = this.#params
    const spent = ledger.all().filter(({ state, spent, kind }) => state === 'queued' && spent >= kind.maxAttempts)
    for (const task of spent) {
      const run = await storage.getRun(task.id)
      if (run?.status !== 'failed' || task.state !== 'queued') continue
      const said = { taskId: task.id, taskType: task.kind.type, timestamp: new Date(clock.now()).toISOString() }
      judge(() => witness.hear(process, { type: 'dead', ...said, attempts: task.spent, error: run.error ?? '' }))
    }
  }

  pause(process: QueueProcess, type: string | undefined): void {
    this.#params.say(`pauses ${type ?? 'all'} in process ${process.number}`)
    for (const each of this.#typesOf(type)) process.paused.add(each)
    process.queue.pause(type)
  }

  resume(process: QueueProcess, type: string | undefined): void {
    this.#params.say(`resumes ${type ?? 'all'} in process ${process.number}`)
    for (const each of this.#typesOf(type)) process.paused.delete(each)
    process.queue.resume(type)
  }

  #typesOf(type: string | undefined): readonly string[] {
    return type === undefined ? this.#params.kinds.map((kind) => kind.type) : [type]
  }

  #create(): QueueProcess {
    const { random, clock, storage, settings, kinds, mutant, judge, say, ledger, witness } = this.#params
    const { wrapQueue = (queue: TaskQueue) => queue, distort = (kind: TaskKind) => kind } = mutant
    const number = this.#opened
    this.#opened += 1
    const process = openQueue({
      number,
      concurrency: random.between(1, 3),
      storage,
      clock,
      settings,
      random: random.next,
      createId: () => this.#nextId(),
      wrap: wrapQueue,
      onTrouble: (message) => judge(() => must(false, () => `process ${number} reports ${message}`)),
      onDeath: (dying) => void settle().then(() => this.#die(dying)),
      onUnsent: (dying, commits) => bookUnsent({ process: dying, ledger, witness }, commits),
      onUnheard: async (dying, done) => {
        say(`nobody hears what came of ${JSON.stringify(done)}`)
        // What was answered before may be about to be said.
        if (done.name === 'claim') await manyTurns()
        await this.#bookUnsaid(dying)
        judge(() => bookLastDeed({ process: dying, done, ledger, witness }))
      },
    })
    this.#listen(process)
    for (const kind of kinds) {
      process.queue.register(kind.type, optionsOf(distort(kind)), (_payload, ctx) => this.#execute(process, ctx))
    }
    return process
  }

  #listen(process: QueueProcess): void {
    const { say, judge, witness } = this.#params
    for (const type of TASK_EVENT_TYPES) {
      process.queue.on(type, (event) => {
        const { timestamp: _timestamp, ...shown } = event
        say(`process ${process.number} says ${JSON.stringify(shown)}`)
        judge(() => witness.hear(process, event))
      })
    }
  }

  #execute(process: QueueProcess, ctx: TaskContext): unknown {
    const { random, say, judge, witness } = this.#params
    const deed = makeDeed(random, this.#isCalm)
    say(`process ${process.number} executes ${ctx.taskId}: ${JSON.stringify(deed)}`)
    const execution = witness.called(process, ctx)
    judge(() => must(execution !== null, () => `the handler of ${ctx.taskId} was called, and nobody said started`))
    return perform({
      deed,
      clock: process.clock,
      signal: ctx.signal,
      onSettled(settled) {
        if (execution !== null) execution.settled ??= settled
      },
    })
  }

  #nextId(): string {
    this.#ids += 1
    return `id${String(this.#ids).padStart(5, '0')}`
  }
}

/** More than lie between an answer of the storage and what is said of it. */
async function manyTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}
