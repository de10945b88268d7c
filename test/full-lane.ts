import { it } from 'vitest'
import { SCALE } from './scale.ts'

/**
 * A test of the full lane alone: it takes seconds of processor time, as pages and processes do, and most of what it would find the
 * tests beside it find as well. `test/skipped.json` has the reason for its file.
 */
export const itInFullLane = it.runIf(SCALE === 'full')
