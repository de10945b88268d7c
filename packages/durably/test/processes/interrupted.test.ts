import { describe, expect, it } from 'vitest'
import type { InterruptedConfig } from './programs/interrupted'
import { usePrograms } from './programs'

const start = usePrograms('interrupted')

const JOBS = [
  'catches for ever',
  'calls one name for ever',
  'awaits one after the other',
  'tidies up in between',
  'does not listen to its branches',
] as const

const ENDED_AS = { cancel: 'cancelled', timeout: 'timed_out', 'lost lease': 'lost', stop: 'released' } as const

describe.each(['cancel', 'timeout', 'lost lease', 'stop'] as const)('an interruption by a %s', (by) => {
  it.each(JOBS)('neither freezes nor ends the process of a job that %s', async (job) => {
    const program = start('interrupted', { job, by } satisfies InterruptedConfig)
    expect(await program.next('ended')).toMatchObject({ as: ENDED_AS[by] })
    program.write('close')
    expect(await program.ended).toMatchObject({ code: 0, stderr: '' })
  })

  it('leaves to the process what else is rejected and nobody hears of', async () => {
    const program = start('interrupted', { job: 'does not listen to its branches', by } satisfies InterruptedConfig)
    await program.next('ended')
    program.write('reject')
    expect(await program.ended).toMatchObject({ code: 1, stderr: expect.stringContaining('Error: Not of the job.') })
  })
})
