/** For how long something is counted. */
export function secondsFor(isQuick) {
  return isQuick ? 0.5 : 2
}

/**
 * Counts what happens during a span of time, once it has been happening for half as long: the first moments belong to
 * the compiler. `counted` resolves to how many a second, and what processor time of this process each took.
 */
export class Clock {
  counted
  #settle
  #warmUp
  #span
  #first = null
  #watch = null
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
    if (this.#watch === null) {
      if (now - this.#first >= this.#warmUp) this.#watch = new Watch()
      return false
    }
    this.#count += 1
    if (now - this.#watch.startedAt < this.#span) return false
    this.stop()
    return true
  }

  /** Nothing more will happen. */
  stop() {
    this.#settle(this.#watch === null ? { value: 0, cpuMicros: null } : this.#watch.rateOf(this.#count))
  }
}

/** From now on. */
export class Watch {
  startedAt = performance.now()
  #cpu = process.cpuUsage()

  rateOf(count) {
    const { user, system } = process.cpuUsage(this.#cpu)
    return { value: (count / (performance.now() - this.startedAt)) * 1000, cpuMicros: (user + system) / count }
  }
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
