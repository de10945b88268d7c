import { ask, reportTrouble, troubleDelayMs, type Engine } from './engine'
import { ClosedError, isRejection, StorageError } from './errors'
import type { CommitAnswer, RunCommit } from './storage'

/** Of runs that commit together: a longer list, or a larger one, would keep the leases of the others waiting. */
const LONGEST_LIST = 64
const LARGEST_LIST = 4 * 1024 * 1024

/** How long what is aside rests between two tries, at most: somebody holds its run, and tells nobody when that ends. */
const LONGEST_ASIDE_MS = 500
/** Of tries aside: of what a moment later is free nobody need hear. */
const TRIES_TO_REPORT = 5

interface Waiting {
  readonly commit: RunCommit
  readonly resolve: (answer: CommitAnswer) => void
  readonly reject: (error: unknown) => void
  tries: number
}

interface Lane {
  gathered: Waiting[]
  isWriting: boolean
}

/**
 * The one way in which workers write. Group commit without a timer: what gathers while one list is being written is the
 * next list. Commits whose run somebody holds go on aside, so that no other waits for them.
 */
export class CommitLine {
  readonly #engine: Engine
  readonly #main: Lane = { gathered: [], isWriting: false }
  readonly #aside: Lane = { gathered: [], isWriting: false }
  #closed = false

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /**
   * Resolves with the storage's answer, however long the storage is away: what is sent is sent again, under the same
   * `commitNo`, until there is one. Rejects only when the storage says that it will never take this write, or was
   * closed, or when the line is closed.
   */
  send(commit: RunCommit): Promise<CommitAnswer> {
    return new Promise((resolve, reject) => this.#enter(this.#main, { commit, resolve, reject, tries: 0 }))
  }

  close(): void {
    this.#closed = true
  }

  #enter(lane: Lane, waiting: Waiting): void {
    if (this.#closed) {
      waiting.reject(new ClosedError())
      return
    }
    lane.gathered.push(waiting)
    if (!lane.isWriting) void this.#write(lane)
  }

  async #write(lane: Lane): Promise<void> {
    lane.isWriting = true
    while (lane.gathered.length > 0) {
      await this.#engine.breathe()
      await this.#deliver(lane.gathered.splice(0, countForOneList(lane.gathered)))
    }
    lane.isWriting = false
  }

  async #deliver(list: readonly Waiting[]): Promise<void> {
    try {
      const commits = list.map((waiting) => waiting.commit)
      const answers = await ask(this.#engine, (storage) => storage.commit(commits))
      for (const [index, waiting] of list.entries()) this.#answer(waiting, answers[index])
    } catch (error) {
      // One commit may be what the storage chokes on, or what it waits for: the others must not suffer for it.
      if (list.length === 1) for (const waiting of list) this.#tryAgain(waiting, error)
      else if (isBusy(error)) for (const waiting of list) void this.#deliver([waiting])
      else for (const waiting of list) await this.#deliver([waiting])
    }
  }

  #answer(waiting: Waiting, given: CommitAnswer | undefined): void {
    if (given === undefined) this.#tryAgain(waiting, noAnswer(waiting))
    else if (!given.kept && given.isBusy === true) this.#setAside(waiting)
    else waiting.resolve(given)
  }

  #setAside(waiting: Waiting): void {
    waiting.tries += 1
    if (waiting.tries % TRIES_TO_REPORT === 0) {
      const { runId } = waiting.commit.lease
      const held = new StorageError('STORAGE_BUSY', `Somebody holds run ${runId}, or one that waits for it, locked.`)
      reportTrouble(this.#engine, held, 'commit')
    }
    const delayMs = Math.min(troubleDelayMs(this.#engine, waiting.tries), LONGEST_ASIDE_MS)
    this.#engine.environment.clock.schedule(delayMs, () => this.#enter(this.#aside, waiting))
  }

  #alone(waiting: Waiting): void {
    if (this.#closed) waiting.reject(new ClosedError())
    else void this.#deliver([waiting])
  }

  #tryAgain(waiting: Waiting, error: unknown): void {
    // What is still in flight when the application closes the storage is nobody's trouble.
    if (!this.#closed || !isClosed(error)) reportTrouble(this.#engine, error, 'commit')
    if (isFinal(error)) {
      waiting.reject(error)
      return
    }
    waiting.tries += 1
    const delayMs = troubleDelayMs(this.#engine, waiting.tries)
    // Somebody holds what it needs: until it is free it waits on its own, out of the others' way.
    const again = () => (isBusy(error) ? this.#alone(waiting) : this.#enter(this.#main, waiting))
    this.#engine.environment.clock.schedule(delayMs, again)
  }
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
