import type { CommitLine } from './commits'
import { askThen, type Engine, type Heard } from '../engine'
import type { CommitAnswer, RunCommit } from '../port'

/** Of which storages make one statement: small ones, since plain jobs have no output. */
const LONGEST_LIST = 500

const SOON = Promise.resolve()

interface End extends Heard<CommitAnswer> {
  readonly commit: RunCommit
}

/**
 * How plain jobs end: those that end together in one list. Whatever is not settled by the first try goes the way of all
 * other commits, which knows what to do about it: it is sent again there, under the same number.
 */
export class PlainEnds {
  readonly #engine: Engine
  readonly #line: CommitLine
  #gathered: End[] = []
  #isWriting = false

  constructor(engine: Engine, line: CommitLine) {
    this.#engine = engine
    this.#line = line
  }

  add(end: End): void {
    this.#gathered.push(end)
    if (this.#isWriting) return
    this.#isWriting = true
    // Who is about to end comes along.
    void SOON.then(() => this.#write())
  }

  #write(): void {
    const ends = this.#gathered.length > LONGEST_LIST ? this.#gathered.splice(0, LONGEST_LIST) : this.#gathered
    if (ends === this.#gathered) this.#gathered = []
    if (ends.length === 0) {
      this.#isWriting = false
      return
    }
    if (this.#line.isClosed) {
      this.#settle(ends, [])
      return
    }
    const commits = ends.map(({ commit }) => commit)
    askThen(this.#engine, (storage) => storage.commit(commits), {
      answer: (answers) => this.#settle(ends, answers),
      fail: () => this.#settle(ends, []),
    })
  }

  #settle(ends: readonly End[], answers: readonly CommitAnswer[]): void {
    for (let index = 0; index < ends.length; index++) {
      const [end, answer] = [ends[index] as End, answers[index]]
      if (answer === undefined || (!answer.kept && answer.isBusy === true)) this.#line.send(end.commit, end)
      else end.answer(answer)
    }
    this.#write()
  }
}
