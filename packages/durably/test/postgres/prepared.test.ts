import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { SqlDurably } from '../../src/index'
import { postgres } from '../../src/postgres'
import { openOn } from '../instances'
import { newPlace, newPool, type Place, WITHOUT_POLLING } from './kit'

const defineNothing = (durably: SqlDurably) => durably.defineJob({ name: 'nothing', input: z.object({}) }, () => {})

/** An instance with one session, and that session. */
async function withOneSession(place: Place) {
  const pool = newPool(place.url, { max: 1 })
  const durably = openOn(postgres({ pool, listen: false }), WITHOUT_POLLING)
  const prepared = async () => {
    const { rows } = await pool.query<{ readonly name: string; readonly statement: string }>(
      'select name, statement from pg_prepared_statements',
    )
    return new Map(rows.map(({ name, statement }) => [name, statement]))
  }
  return { pool, durably, prepared }
}

/** More than any statement has that only reads. */
const MANY_PARAMETERS = Array.from({ length: 30 }, (_, n) => `$${n + 1}::text`).join()

describe('prepared statements', () => {
  it('have names that say of which text they are, in whatever order they were prepared', async () => {
    const place = await newPlace()
    const one = await withOneSession(place)
    const other = await withOneSession(place)
    await defineNothing(one.durably).trigger({})
    await one.durably.getRun('none')
    await other.durably.getRun('none')
    await defineNothing(other.durably).trigger({})
    await other.durably.getRuns()
    const [ofOne, ofOther] = [await one.prepared(), await other.prepared()]
    const common = [...ofOne.keys()].filter((name) => ofOther.has(name))
    expect(common.length).toBeGreaterThan(1)
    for (const name of common) expect(ofOther.get(name)).toBe(ofOne.get(name))
    const texts = new Set(ofOne.values())
    expect([...ofOther].filter(([name, text]) => texts.has(text) && !ofOne.has(name))).toEqual([])
  })

  it.each([
    ['26000', (name: string) => `deallocate ${name}`],
    ['08P01', (name: string) => `deallocate ${name}; prepare ${name} as select ${MANY_PARAMETERS}`],
  ])('that are others on the session than durably thinks (%s) are explained once', async (code, mixUp) => {
    const { pool, durably, prepared } = await withOneSession(await newPlace())
    await durably.getRun('none')
    for (const name of (await prepared()).keys()) await pool.query(mixUp(name))
    await expect(durably.getRun('none')).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringContaining('prepare: false'),
      cause: { code },
    })
    expect(await durably.getRun('none')).toBeNull()
    await defineNothing(durably).trigger({})
    expect(await prepared()).toEqual(new Map())
  })

  it('that somebody else has prepared on the session (42P05) are explained once', async () => {
    const place = await newPlace()
    const first = await withOneSession(place)
    await first.durably.getRun('none')
    const taken = await first.prepared()
    const pool = newPool(place.url, { max: 1 })
    pool.on('connect', (client: pg.PoolClient) => {
      for (const [name, text] of taken) void client.query({ name: `of_${name}`, text: `prepare ${name} as ${text}` })
    })
    const durably = openOn(postgres({ pool, listen: false }), WITHOUT_POLLING)
    await expect(durably.getRun('none')).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringContaining('prepare: false'),
      cause: { code: '42P05' },
    })
    expect(await durably.getRun('none')).toBeNull()
  })
})
