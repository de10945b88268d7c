import { describe, expect, it } from 'vitest'
import { usePrograms } from '../processes/programs'
import { newPlace } from './kit'
import type { LeaverConfig } from './programs/leaver'

const start = usePrograms('leaver')

/** Idle connections would keep it for 10 s, the one that listens for ever. */
const BY_ITSELF_MS = 9000

describe('a process that used Postgres', () => {
  it.each([
    ['closed its instance', 'close'],
    ['stopped its worker', 'stop'],
    ['never worked, and closes nothing', 'nothing'],
  ] as const)('and %s ends by itself, without a word', async (_what, last) => {
    const place = await newPlace()
    const program = start('leaver', { url: place.url, last } satisfies LeaverConfig)
    const { at } = await program.next('done')
    expect(await program.ended).toEqual({ code: 0, signal: null, stderr: '' })
    expect(Date.now() - Number(at)).toBeLessThan(BY_ITSELF_MS)
  })
})
