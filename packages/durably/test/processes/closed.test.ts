import { chmodSync, readdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { SqlDurably } from '../../src/index'
import { newFile, openMigrated, openOn } from '../instances'
import { observe } from './observer'
import { connect, DRIVERS } from './programs/drivers'
import type { LockedOutConfig } from './programs/locked-out'
import { usePrograms } from './programs'

const start = usePrograms('locked-out')

function defineOne(durably: SqlDurably) {
  return durably.defineJob({ name: 'one', input: z.object({}) }, (ctx) => ctx.run('only', () => 1))
}

async function fileWithOneRun(): Promise<{ readonly file: string; readonly runId: string }> {
  const file = newFile()
  const durably = await observe(file)
  const { id } = await defineOne(durably).trigger({})
  await durably.close()
  return { file, runId: id }
}

describe.each(DRIVERS)('a database that is taken away, with %s', (driver) => {
  it('in a folder that cannot be written stops no worker, which goes on once it can', async () => {
    const { file, runId } = await fileWithOneRun()
    chmodSync(file, 0o444)
    chmodSync(dirname(file), 0o555)
    const program = start('locked-out', { driver, file } satisfies LockedOutConfig)
    const failed: unknown[] = []
    program.onMessage((message) => {
      if (message.type === 'failed') failed.push(message)
    })
    try {
      expect(await program.next('trouble')).toMatchObject({
        code: expect.stringMatching(/^STORAGE_(READONLY|UNAVAILABLE)$/),
      })
      program.write('trigger')
      expect(await program.next('refused')).toMatchObject({
        refusal: expect.stringMatching(/^STORAGE_(READONLY|UNAVAILABLE)$/),
        worker: 'running',
      })
    } finally {
      chmodSync(dirname(file), 0o777)
      chmodSync(file, 0o666)
    }
    expect(await program.next('completed')).toMatchObject({ runId })
    program.write('stop')
    expect(await program.ended).toMatchObject({ code: 0, stderr: '' })
    expect(failed).toEqual([])
    expect(await (await observe(file)).getRuns()).toMatchObject([{ id: runId, status: 'completed', output: 1 }])
  })

  it('by deleting the file fails no run, and who opens it anew is told', async () => {
    const file = newFile()
    const durably = await openMigrated(await connect(driver, file))
    const job = defineOne(durably)
    const failed: string[] = []
    durably.on('run:fail', ({ runId }) => failed.push(runId))
    durably.start()
    await job.triggerAndWait({})
    for (const name of readdirSync(dirname(file))) rmSync(`${dirname(file)}/${name}`)

    await job.triggerAndWait({})
    expect(durably.health().worker).toBe('running')
    const anew = openOn(await connect(driver, file))
    await expect(defineOne(anew).trigger({})).rejects.toMatchObject({ code: 'NOT_MIGRATED' })
    await expect(anew.getRuns()).rejects.toMatchObject({ code: 'NOT_MIGRATED' })
    await anew.migrate()
    expect(await anew.getRuns()).toEqual([])
    expect(failed).toEqual([])
  })
})
