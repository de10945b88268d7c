import { describe, expect, it } from 'vitest'
import { findRepeats, type PostgresWrite } from './audit'
import type { BodyStart } from './witness'

function record(epoch: number): PostgresWrite {
  const run = { source: 'steps', runId: 'a', key: null, limit: 1, status: 'running', epoch, token: 't', slot: null }
  return { position: epoch, owner: 'w', ...run, stepName: 'one', stepStatus: 'completed' }
}

function began(epoch: number): BodyStart {
  return { pid: 1, runId: 'a', stepName: 'one', epoch, at: 0 }
}

/** What it has to find, or its silence would mean nothing. */
describe('the comparison of records and bodies finds', () => {
  it.each([
    ['a step recorded twice', [record(1), record(2)], [began(1), began(2)]],
    ['a body that began after its record', [record(1)], [began(1), began(2)]],
    ['a body that began twice in one execution', [record(2)], [began(1), began(1), began(2)]],
  ])('%s', (_name, writes, starts) => {
    expect(findRepeats(writes, starts)).not.toEqual([])
  })

  it('nothing in a body that began again before its record', () => {
    expect(findRepeats([record(2)], [began(1), began(2)])).toEqual([])
  })
})
