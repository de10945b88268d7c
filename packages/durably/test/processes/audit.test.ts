import { describe, expect, it } from 'vitest'
import { type AcceptedWrite, findBreaches } from './audit'

const KEY = { key: 'k', limit: 2 }

function write(changes: Partial<AcceptedWrite>): AcceptedWrite {
  const run = { source: 'runs', runId: 'a', key: null, limit: 1, status: 'running', epoch: 1, token: 't', slot: null }
  return { position: 0, owner: 'w', ...run, ...changes }
}

function claimed(runId: string, slot: number | null): AcceptedWrite {
  return write({ ...KEY, runId, slot })
}

/** What a replay has to find, or its silence would mean nothing. */
describe('the replay of accepted writes finds', () => {
  it.each([
    ['a write under an older epoch', [write({ epoch: 2 }), write({ epoch: 1 })]],
    ['a claim without a new epoch', [write({ status: 'pending' }), write({ token: 'u' })]],
    ['a claim without a new token', [write({ status: 'pending' }), write({ epoch: 2 })]],
    ['two tokens in one epoch', [write({}), write({ source: 'steps', token: 'u' })]],
    ['more holders than the limit', [claimed('a', 0), claimed('b', 1), claimed('c', 1)]],
    ['a slot taken twice', [claimed('a', 0), claimed('b', 0)]],
    ['a slot beyond the limit', [claimed('a', 2)]],
    ['a holder without a slot', [claimed('a', null)]],
  ])('%s', (_name, writes) => {
    expect(findBreaches(writes)).not.toEqual([])
  })

  it('nothing in what has to be', () => {
    const ended = { ...KEY, runId: 'a', status: 'completed', slot: null }
    const again = { ...KEY, runId: 'b', slot: 0 }
    expect(
      findBreaches([
        claimed('a', 0),
        claimed('b', 1),
        write(ended),
        write({ ...again, status: 'pending', slot: null }),
        write({ ...again, epoch: 2, token: 'u' }),
        claimed('c', 1),
      ]),
    ).toEqual([])
  })
})
