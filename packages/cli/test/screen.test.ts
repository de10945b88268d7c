import { createDurably } from '@coji/durably'
import { libsql } from '@coji/durably/libsql'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { renderTable } from '../src/terminal/table'
import { durationOf } from '../src/terminal/words'
import { call, tempFile } from './kit'

const { file, remove } = tempFile()
const ESCAPE = '\u001b'

beforeAll(async () => {
  const durably = createDurably({ dialect: libsql(`file:${file}`) })
  const broken = durably.defineJob({ name: 'a-job-with-quite-a-long-name', input: z.unknown() }, () => {
    throw new Error(`${ESCAPE}[2Jit broke\nin two lines, and the reason is a rather long one that needs room`)
  })
  await durably.migrate()
  await broken.trigger({})
  await broken.trigger({})
  await durably.runUntilIdle()
  await durably.close()
  return remove
})

const lengths = (text: string) => text.split('\n').map((line) => line.length)

it('cuts nothing off where there is no screen, and has no colours', async () => {
  const { out } = await call(['runs', '--db', file])
  expect(out).toContain('the reason is a rather long one that needs room')
  expect(out).not.toContain(ESCAPE)
})

describe('on a screen', () => {
  it.each([60, 80, 120])('a table fits into %s columns', async (columns) => {
    const { out } = await call(['runs', '--db', file], { columns, env: { NO_COLOR: '1' } })
    expect(Math.max(...lengths(out))).toBeLessThanOrEqual(Math.max(columns, 75))
    expect(out).toContain('failed')
    expect(out).not.toContain(ESCAPE)
  })

  it('has colours unless somebody does not want them', async () => {
    for (const [env, isColoured] of [
      [{}, true],
      [{ NO_COLOR: '1' }, false],
      [{ TERM: 'dumb' }, false],
    ] as const) {
      expect((await call(['status', '--db', file], { env })).out.includes(ESCAPE)).toBe(isColoured)
    }
  })

  it('what jobs wrote gives the terminal no orders', async () => {
    const { out } = await call(['runs', '--db', file], { columns: 300 })
    expect(out).toContain('it broke in two lines')
    const [, id = ''] = /(\w{26}) .*failed/.exec(out) ?? []
    const { out: whole } = await call(['run', id, '--db', file], { columns: 300 })
    expect(whole).toContain('it broke in two lines')
    expect(out + whole).not.toContain('[2J')
  })

  it('asks before it does something to many, and does nothing without a yes', async () => {
    const refused = await call(['retry', '--status', 'failed', '--db', file], { answer: 'no' })
    expect(refused).toMatchObject({ code: 1, out: '' })
    expect(refused.err).toContain('Retry 2 runs? [y/N]')
    expect(refused.err).toMatch(/Nothing was done\.\n$/)
    const wanted = await call(['retry', '--status', 'failed', '--db', file], { answer: 'y' })
    expect(wanted).toMatchObject({ code: 0, out: '2 runs start again; completed steps stay.\n' })
    expect((await call(['retry', '--all', '--yes', '--db', file])).out).toBe('There is no run to retry.\n')
  })
})

it('gives wide characters the room that they take', () => {
  const columns = [
    { title: 'A', value: (text: string) => text, least: 4 },
    { title: 'B', value: () => 'b' },
  ]
  const table = renderTable(columns, ['請求書を送る', 'bill'], { width: 11, titlePaint: (text) => text })
  expect(table.split('\n')).toEqual(['A         B', '請求書…   b', 'bill      b'])
})

it('says durations as exactly as anybody wants them', () => {
  const said = [4, 1400, 59_400, 61_000, 3_600_000, 9_000_000, 90_000_000].map(durationOf)
  expect(said).toEqual(['4 ms', '1.4 s', '59 s', '1 min', '1 h', '2 h 30 min', '1 d 1 h'])
})
