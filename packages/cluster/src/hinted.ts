import type { Environment } from '@coji/durably-core'

interface HintedParams {
  readonly clock: Environment['clock']
  /** Between two looks, once several have led to nothing. */
  readonly restMs: number
  look(): void
}

/** What follows an assignment, such as its start, is told of as well. */
const FRUITLESS_LOOKS = 4

/** Looks when there is a hint. A hint does not say of which job it is: where others run all the time, those that come soon gather. */
export class Hinted {
  readonly #params: HintedParams
  #fruitless = 0
  #restsUntil = 0
  #callOff: (() => void) | null = null

  constructor(params: HintedParams) {
    this.#params = params
  }

  hint(): void {
    if (this.#callOff !== null) return
    const { clock, look } = this.#params
    const leftMs = this.#restsUntil - clock.monotonic()
    if (leftMs <= 0) {
      look()
      return
    }
    this.#callOff = clock.schedule(leftMs, () => {
      this.#callOff = null
      look()
    })
  }

  /** What a look has led to, whoever asked for it. */
  noteLook(isFruitless: boolean): void {
    this.#fruitless = isFruitless ? this.#fruitless + 1 : 0
    const rests = this.#fruitless >= FRUITLESS_LOOKS
    this.#restsUntil = rests ? this.#params.clock.monotonic() + this.#params.restMs : 0
  }

  stop(): void {
    this.#callOff?.()
    this.#callOff = null
  }
}
