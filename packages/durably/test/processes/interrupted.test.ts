import { describe, expect, it } from 'vitest'
import type { InterruptedConfig } from './programs/interrupted'
import { usePrograms } from './programs'

const start = usePrograms('interrupted')

const JOBS = [
  'catches for ever',
  'calls one name for ever',
  'awaits one after the other',
  'tidies up in between',
] as const

describe.each(['cancel', 'timeout'] as const)('an interruption by a %s', (by) => {
  it.each(JOBS)('neither freezes nor ends the process of a job that %s', async (job) => {
    const program = start('interrupted', { job, by } satisfies InterruptedConfig)
    expect(await program.next('ended')).toMatchObject({ as: by === 'cancel' ? 'cancelled' : 'timed_out' })
    program.write('close')
    expect(await program.ended).toMatchObject({ code: 0, stderr: '' })
  })
})
