import { askThen, type Engine, type Heard, reportTrouble, troubleDelayMs } from '../engine'
import { ClosedError, isRejection, StorageError } from '../base'
import { type CommitAnswer, createsRuns, type RunCommit } from '../port'

/** Of runs that commit together: a longer list, or a larger one, would keep the leases of the others waiting. */
const LONGEST_LIST = 64
const LARGEST_LIST = 4 * 1024 * 1024

/** How long what is aside rests between two tries, at most: somebody holds its run, and tells nobody when that ends. */
const LONGEST_ASIDE_MS = 500
/** Of one commit aside: of what a moment later is free nobody need hear. It is told again after twice as many. */
const TRIES_TO_REPORT = 5
/** What is aside may wait for somebody else at every try: no list is behind all the others. */
const LISTS_ASIDE = 3

const SOON = Promise.resolve()

interface Waiting {
  readonly commit: RunCommit
  readonly heard: Heard<CommitAnswer>
  tries: number
}

interface Lane {
  gathered: Waiting[]
  writing: number
  /** So many lists at once. */
  readonly most: number
}

/**
 * The one way in which workers write. Group commit without a timer: what gathers while one list is being written is the
 * next list. What may have to wait for somebody has a lane of its own, so that no other waits for it: commits that create
 * runs, whose idempotency keys others may be taking, and those of which the storage said that their run is held.
 */
export class CommitLine {
  readonly #engine: Engine
  readonly #main: Lane = { gathered: [], writing: 0, most: 1 }
  readonly #creating: Lane = { gathered: [], writing: 0, most: 1 }
  readonly #aside: Lane = { gathered: [], writing: 0, most: LISTS_ASIDE }
  #closed = false

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /**
   * Hears the storage's answer, however long the storage is away: what is sent is sent again, under the same `commitNo`,
   * until there is one. Fails only when the storage says that it will never take this write, or was closed, or when the
   * line is closed.
   */
  send(commit: RunCommit, heard: Heard<CommitAnswer>): void {
    this.#enter(this.#laneOf(commit), { commit, heard, tries: 0 })
  }

  close(): void {
    this.#closed = true
  }

  /** Nothing is sent any more. */
  get isClosed(): boolean {
    return this.#closed
  }

  #laneOf(commit: RunCommit): Lane {
    return createsRuns(commit) ? this.#creating : this.#main
  }

  #enter(lane: Lane, waiting: Waiting): void {
    if (this.#closed) {
      waiting.heard.fail(new ClosedError())
      return
    }
    lane.gathered.push(waiting)
    if (lane.writing === lane.most) return
    lane.writing += 1
    // Who is about to send comes along.
    void SOON.then(() => this.#write(lane))
  }

  #write(lane: Lane): void {
    const turning = this.#engine.breathe()
    if (turning === undefined) this.#writeNow(lane)
    else void turning.then(() => this.#writeNow(lane))
  }

  #writeNow(lane: Lane): void {
    const list = lane.gathered.splice(0, countForOneList(lane.gathered))
    if (list.length === 0) lane.writing -= 1
    else this.#deliver(list, () => this.#write(lane))
  }

  #deliver(list: readonly Waiting[], next: () => void): void {
    const commits = list.map((waiting) => waiting.commit)
    askThen(this.#engine, (storage) => storage.commit(commits), {
      answer: (given) => {
        // A storage of somebody's own may answer anything.
        const answers: readonly (CommitAnswer | undefined)[] = Array.isArray(given) ? given : []
        this.#setAside(list.filter((waiting, index) => this.#isHeld(waiting, answers[index])))
        next()
      },
      fail: (error) => this.#divide(list, error, next),
    })
  }

  /** One commit may be what the storage chokes on, or what it waits for: the others must not suffer for it. */
  #divide(list: readonly Waiting[], error: unknown, next: () => void): void {
    if (list.length > 1 && !isBusy(error)) {
      this.#deliverEach(list, next)
      return
    }
    for (const waiting of list) {
      if (list.length === 1) this.#tryAgain(waiting, error)
      else this.#deliver([waiting], () => {})
    }
    next()
  }

  /** One after the other. */
  #deliverEach([first, ...others]: readonly Waiting[], next: () => void): void {
    if (first === undefined) next()
    else this.#deliver([first], () => this.#deliverEach(others, next))
  }

  /** Whether it is to be tried again aside. Anything else is settled here. */
  #isHeld(waiting: Waiting, given: CommitAnswer | undefined): boolean {
    if (given === undefined || given === null) this.#tryAgain(waiting, noAnswer(waiting))
    else if (!given.kept && given.isBusy === true) return true
    else waiting.heard.answer(given)
    return false
  }

  #setAside(held: readonly Waiting[]): void {
    const lasting: Waiting[] = []
    for (const waiting of held) {
      waiting.tries += 1
      if (isTimeToReport(waiting.tries)) lasting.push(waiting)
      const delayMs = Math.min(troubleDelayMs(this.#engine, waiting.tries), LONGEST_ASIDE_MS)
      this.#engine.environment.clock.schedule(delayMs, () => this.#enter(this.#aside, waiting))
    }
    if (lasting.length > 0) reportTrouble(this.#engine, heldError(lasting), 'commit')
  }

  #alone(waiting: Waiting): void {
    if (this.#closed) waiting.heard.fail(new ClosedError())
    else this.#deliver([waiting], () => {})
  }

  #tryAgain(waiting: Waiting, error: unknown): void {
    // What is still in flight when the application closes the storage is nobody's trouble.
    if (!this.#closed || !isClosed(error)) reportTrouble(this.#engine, error, 'commit')
    if (isFinal(error)) {
      waiting.heard.fail(error)
      return
    }
    waiting.tries += 1
    const delayMs = troubleDelayMs(this.#engine, waiting.tries)
    // Somebody holds what it needs: until it is free it waits on its own, out of the others' way.
    const again = () => (isBusy(error) ? this.#alone(waiting) : this.#enter(this.#laneOf(waiting.commit), waiting))
    this.#engine.environment.clock.schedule(delayMs, again)
  }
}

/** After 5, 10, 20, 40 tries … */
function isTimeToReport(tries: number): boolean {
  return Number.isInteger(Math.log2(tries / TRIES_TO_REPORT))
}

function heldError(waiting: readonly Waiting[]): StorageError {
  const [first] = waiting
  const others = waiting.length === 1 ? '' : ` and ${waiting.length - 1} others`
  const what = `Somebody holds run ${first?.commit.lease.runId}${others} locked,`
  return new StorageError('STORAGE_BUSY', `${what} or one that waits for it, or a key of a run that it creates.`)
}

function countForOneList(gathered: readonly Waiting[]): number {
  let size = 0
  const end = gathered.findIndex(({ commit }, index) => {
    size += sizeOf(commit)
    return index === LONGEST_LIST || (index > 0 && size > LARGEST_LIST)
  })
  return end === -1 ? gathered.length : end
}

/** What users put into it, about. */
function sizeOf({ steps, children, events, outcome }: RunCommit): number {
  let size = outcome?.kind === 'complete' ? (outcome.output?.length ?? 0) : 0
  for (const { output, checkpoint } of steps) size += (output?.length ?? 0) + (checkpoint?.length ?? 0)
  for (const { payload } of children) size += payload?.length ?? 0
  for (const { payload } of events) size += payload.length
  return size
}

function isFinal(error: unknown): boolean {
  return isClosed(error) || isRejection(error)
}

function isBusy(error: unknown): boolean {
  return error instanceof StorageError && (error.code === 'STORAGE_BUSY' || error.code === 'CONNECTION_HELD')
}

function isClosed(error: unknown): boolean {
  return error instanceof StorageError && error.code === 'STORAGE_CLOSED'
}

function noAnswer({ commit }: Waiting): StorageError {
  const what = `The storage gave no answer to a commit of run ${commit.lease.runId}.`
  return new StorageError('STORAGE_NO_ANSWER', `${what} It has to give one for each commit of a list, in their order.`)
}
