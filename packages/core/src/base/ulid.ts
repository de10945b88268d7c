/** Crockford's base 32. */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Two digits for each ten bits. */
const PAIRS: readonly string[] = Array.from({ length: 1024 }, (_, bits) => `${DIGITS[bits >> 5]}${DIGITS[bits & 31]}`)

const TEN_BITS = 2 ** 10
const TWENTY_BITS = 2 ** 20
const THIRTY_BITS = 2 ** 30
const LAST_MS = 2 ** 48 - 1

/**
 * Makes ULIDs that grow: 48 bits of time, then 80 that are drawn anew for each millisecond and count up within it. When
 * the clock is set back, they go on counting. `chance` gives numbers from 0 up to 1.
 */
export function createUlids(now: () => number, chance: () => number): () => string {
  const draw = (below: number) => Math.floor(chance() * below)
  let lastMs = -1
  /** The time and the upper forty bits as text, then twenty bits, and the twenty that count. */
  let front = ''
  let middle = 0
  let count = 0
  let prefix = ''

  function begin(ms: number): void {
    lastMs = ms
    front = textOfTime(ms) + textOf(draw(TWENTY_BITS)) + textOf(draw(TWENTY_BITS))
    // The upper half is left to count up to.
    middle = draw(TWENTY_BITS / 2)
    count = draw(TWENTY_BITS)
    prefix = front + textOf(middle)
  }

  function countUp(): void {
    count += 1
    if (count < TWENTY_BITS) return
    count = 0
    middle += 1
    if (middle < TWENTY_BITS) prefix = front + textOf(middle)
    else begin(lastMs + 1)
  }

  return () => {
    const ms = Math.min(Math.max(Math.floor(now()), 0), LAST_MS)
    if (ms > lastMs) begin(ms)
    else countUp()
    return prefix + PAIRS[count >> 10] + PAIRS[count & 1023]
  }
}

/** Ten digits. */
function textOfTime(ms: number): string {
  const low = ms % THIRTY_BITS
  return textOf(Math.floor(ms / THIRTY_BITS)) + PAIRS[Math.floor(low / TWENTY_BITS)] + textOf(low % TWENTY_BITS)
}

/** Four digits for twenty bits. */
function textOf(bits: number): string {
  return `${PAIRS[Math.floor(bits / TEN_BITS)]}${PAIRS[bits % TEN_BITS]}`
}
