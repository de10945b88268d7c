import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { SqlDurably } from '../src/index'
import { withLogPersistence } from '../src/plugins'
import { DATABASES } from './databases'
import { newFile, openMigrated } from './instances'

function talkJob(durably: SqlDurably, words: readonly string[]) {
  durably.use(withLogPersistence())
  return durably.defineJob({ name: 'talk', input: z.object({}) }, (ctx) =>
    ctx.stream('answer', async (emit) => {
      for (const word of words) await emit(word)
      await emit({ words: words.length })
      if (words.length === 1) throw new Error('lost the thread')
      return words.join('')
    }),
  )
}

describe.each(DATABASES)('ctx.stream on $name', ({ dialect }) => {
  it('keeps its chunks, and says in another process that it starts again', async () => {
    const file = newFile()
    const before = await openMigrated(dialect(file), { durability: 'fast' })
    const { id } = await talkJob(before, ['Well']).trigger({})
    await before.runUntilIdle()
    expect(await before.getRun(id)).toMatchObject({ status: 'failed' })
    await before.close()

    const after = await openMigrated(dialect(file), { durability: 'fast' })
    talkJob(after, ['Once ', 'upon ', 'a time'])
    await after.retry(id)
    await after.runUntilIdle()
    expect(await after.getRun(id)).toMatchObject({ status: 'completed', output: 'Once upon a time' })
    const told = (await after.getEvents(id)).filter(({ type }) => type.startsWith('step:'))
    expect(told.map((event) => ('chunk' in event ? event.chunk : event.type))).toEqual([
      ...['step:start', 'Well', { words: 1 }, 'step:fail'],
      ...['step:start', 'step:restart', 'Once upon a time', { words: 3 }, 'step:complete'],
    ])
    expect(await after.getSteps(id)).toMatchObject([
      { kind: 'stream', status: 'failed' },
      { kind: 'stream', status: 'completed', output: 'Once upon a time' },
    ])
  })
})
