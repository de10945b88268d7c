import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newPlace } from './kit'

const PAGE = readFileSync(new URL('../../../../docs/postgres.md', import.meta.url), 'utf8')

/** The statements that the docs invite to look around with. */
function documented(): readonly string[] {
  const [, block = ''] = /```sql\n([\s\S]*?)```/.exec(PAGE) ?? []
  return block.split(';').flatMap((statement) => (statement.trim() === '' ? [] : [statement]))
}

describe('the tables on Postgres', () => {
  it('can be looked at with the statements of the docs', async () => {
    const place = await newPlace()
    const durably = place.open()
    const job = durably.defineJob({ name: 'greet', input: z.object({ who: z.string() }) }, async (ctx, { who }) => {
      await ctx.run('think', () => who.length)
      await ctx.run('speak', () => {
        throw new Error('hoarse')
      })
    })
    const { id } = await job.trigger({ who: 'world' })
    await durably.runUntilIdle()
    const [runs, steps] = documented()
    const fromDocs = (sql = '') => place.query(sql.replace(/'01[0-9A-Z]{24}'/, `'${id}'`))
    expect(await fromDocs(runs)).toEqual([
      { id, job_name: 'greet', status: 'failed', who: 'world', created_at: expect.any(Date), error: 'hoarse' },
    ])
    expect(await fromDocs(steps)).toMatchObject([
      { name: 'think', status: 'completed', output: 5, took: expect.anything() },
      { name: 'speak', status: 'failed', output: null },
    ])
  })
})
