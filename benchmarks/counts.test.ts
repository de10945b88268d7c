import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { postgresUrl } from '../test/postgres.ts'
import { ROOT } from '../test/root.ts'
import { SCALE } from '../test/scale.ts'
import { checkCounts, grownBeyond } from './counts/counts.mjs'

beforeAll(() => {
  if (!existsSync(join(ROOT, 'packages/durably/dist/index.js'))) throw new Error('Not built: run `npm run build`')
})

/** On libSQL it is the driver of better-sqlite3 with another library: looked at now and then. */
const DRIVERS = ['memory', 'better-sqlite3', 'postgres', ...(SCALE === 'full' ? ['libsql'] : [])]

describe('what a step, a trigger and a task cost', () => {
  it.concurrent.each(DRIVERS)('has not grown on %s', async (driver) => {
    expect(await checkCounts(driver, { postgres: driver === 'postgres' ? await postgresUrl() : null })).toEqual([])
  })
})

const LIMITS = {
  node: 20,
  costs: { memory: { step: { promises: 36, timers: 0, statements: 1, sent: 1000, allocated: 10_000 } } },
}
const WITHIN = { promises: 36.4, timers: 0.04, statements: 1.09, sent: 1029, allocated: 11_400 }

describe('a count', () => {
  const grown = (more: object, node = 20) =>
    [...grownBeyond({ node, costs: { step: { ...WITHIN, ...more } } }, LIMITS, 'memory').keys()].map(
      (what) => what.split(' ')[0],
    )

  it('may be a little over its limit', () => {
    expect(grown({})).toEqual([])
  })

  it.each([
    ['promises', 37],
    ['timers', 0.06],
    ['statements', 1.2],
    ['sent', 1031],
    ['allocated', 11_600],
  ])('of %s is too much at %d', (name, count) => {
    expect(grown({ [name]: count })).toEqual([name])
  })

  it('without a limit, or a limit without a count, is a mistake', () => {
    expect(grown({ roundTrips: 1 })).toEqual(['roundTrips'])
    expect(grown({ sent: undefined })).toEqual(['sent'])
  })

  it('of bytes on the heap is compared on the same Node only', () => {
    expect(grown({ allocated: 20_000 }, 24)).toEqual([])
  })
})
