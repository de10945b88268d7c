import type { Instant } from '../../port'
import { assert } from '../assert'

const FIXED_WIDTH = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
/** A storage may read its clock more than once in a write, and a loaded machine is slow in between. */
const TOLERANCE_MS = 10_000

/** Fixed width is what makes text order time order. */
export function assertInstant(instant: Instant | null, what: string): asserts instant is Instant {
  assert(instant !== null && FIXED_WIDTH.test(instant), `${what}: is ${instant}, expected an instant of fixed width`)
}

/** `later` comes this long after `earlier`, both by the clock of the storage. */
export function assertApart(earlier: Instant | null, later: Instant | null, ms: number): void {
  assertInstant(earlier, 'the earlier instant')
  assertInstant(later, 'the later instant')
  const found = Date.parse(later) - Date.parse(earlier)
  assert(Math.abs(found - ms) <= TOLERANCE_MS, `${later} is ${found} ms after ${earlier}, expected about ${ms} ms`)
}
