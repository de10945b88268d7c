import { StorageError } from '@coji/durably-core/storage'
import { isInUse } from './opfs-trouble'

/** SQLite gives a file that another tab holds up after 4.5 s, and says so. */
const FIRST_LOOK_MS = 6_000
const LOOK_AGAIN_MS = 1_000

/** Some minute, longer than anything takes. Looks are counted, because the time of a frozen page goes on without it. */
const MOST_LOOKS = 55

interface Question {
  readonly askedAt: number
}

/** The questions to a worker of SQLite that it has not answered yet. */
export class Questions {
  /** `null` for what is no file. */
  readonly #file: string | null
  readonly #open = new Set<Question>()

  constructor(file: string | null) {
    this.#file = file
  }

  /** How long the oldest of them has waited; `null` without one. */
  get waitMs(): number | null {
    const [oldest] = this.#open
    return oldest === undefined ? null : performance.now() - oldest.askedAt
  }

  /** The first of these answers. Rejects, after `onSilence`, when nobody is there any more to answer. */
  async answered<T>(answers: readonly Promise<T>[], onSilence: (silence: StorageError) => void = () => {}): Promise<T> {
    const question = { askedAt: performance.now() }
    const silence = new Silence(this.#file, onSilence)
    this.#open.add(question)
    try {
      return await Promise.race([...answers, silence.heard])
    } finally {
      silence.end()
      this.#open.delete(question)
    }
  }
}

/**
 * A worker that was ended tells nobody. One that is at work has its file for itself, so a file that can be had while an
 * answer is due means that nobody works on it.
 */
class Silence {
  readonly heard: Promise<never>
  readonly #file: string | null
  readonly #onHeard: (silence: StorageError) => void
  #fail: (error: StorageError) => void = () => {}
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false
  #looks = 0
  #looksInVain = 0

  constructor(file: string | null, onHeard: (silence: StorageError) => void) {
    this.#file = file
    this.#onHeard = onHeard
    this.heard = new Promise((_, reject) => {
      this.#fail = reject
    })
    this.#lookIn(FIRST_LOOK_MS)
  }

  end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  #lookIn(ms: number): void {
    this.#timer = setTimeout(() => void this.#look(), ms)
  }

  async #look(): Promise<void> {
    const isFree = this.#file !== null && !(await isInUse(this.#file))
    if (this.#isOver) return
    this.#looks += 1
    this.#looksInVain = isFree ? this.#looksInVain + 1 : 0
    if (this.#looksInVain < 2 && this.#looks < MOST_LOOKS) {
      this.#lookIn(LOOK_AGAIN_MS)
      return
    }
    const silence = new StorageError(
      'STORAGE_UNAVAILABLE',
      'The worker of SQLite does not answer any more, and was given up. The next call starts another.',
    )
    this.#onHeard(silence)
    this.#fail(silence)
  }
}
