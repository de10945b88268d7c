/** For how long something is counted. */
export function secondsFor(isQuick) {
  return isQuick ? 0.5 : 2
}

/**
 * Counts what happens during a span of time, once it has been happening for half as long: the first moments belong to
 * the compiler. `counted` resolves to how many a second.
 */
export class Clock {
  counted
  #settle
  #warmUp
  #span
  #first = null
  #started = null
  #count = 0

  constructor(seconds) {
    this.#warmUp = seconds * 500
    this.#span = seconds * 1000
    this.counted = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  /** Says that it happened; answers whether it is enough. */
  tick() {
    const now = performance.now()
    this.#first ??= now
    if (this.#started === null && now - this.#first >= this.#warmUp) {
      this.#started = now
      return false
    }
    if (this.#started === null) return false
    this.#count += 1
    if (now - this.#started < this.#span) return false
    this.stop()
    return true
  }

  /** Nothing more will happen. */
  stop() {
    this.#settle(this.#started === null ? 0 : perSecond(this.#count, performance.now() - this.#started))
  }
}

export function perSecond(count, ms) {
  return (count / ms) * 1000
}

/** Repeats until the clock has enough. */
export async function repeat(seconds, act) {
  const clock = new Clock(seconds)
  for (let n = 0; ; n++) {
    await act(n)
    if (clock.tick()) return clock.counted
  }
}

/** The same without a promise in between, for what is none. */
export function repeatSync(seconds, act) {
  const clock = new Clock(seconds)
  for (let n = 0; ; n++) {
    act(n)
    if (clock.tick()) return clock.counted
  }
}
