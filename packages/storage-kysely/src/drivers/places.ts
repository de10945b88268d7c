import { connectionHeld } from '../connection'

/** A number of places. Who finds none waits in line. */
export class Places {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  /** Without `waitMs` it waits for as long as it takes; with it, it throws `CONNECTION_HELD` and has taken none. */
  async take(waitMs?: number): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const waiting = this.#waiting
      const timer = waitMs === undefined ? undefined : setTimeout(giveUp, waitMs)
      function enter() {
        clearTimeout(timer)
        resolve()
      }
      function giveUp() {
        waiting.splice(waiting.indexOf(enter), 1)
        reject(connectionHeld())
      }
      waiting.push(enter)
    })
  }

  giveBack(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free += 1
    else next()
  }
}
