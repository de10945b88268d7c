import type { StoredEvent } from '@coji/durably'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Events } from '../api/run-source'
import { RunFollower } from './run-follower'

const page = new EventTarget() as EventTarget & { visibilityState: string }

beforeEach(() => {
  page.visibilityState = 'visible'
  vi.stubGlobal('document', page)
})

function event(seq: number, about: object): StoredEvent {
  return { seq, sequence: seq, runId: 'r', at: '', ...about } as unknown as StoredEvent
}

const begin = event(1, { type: 'step:start', stepName: 'turn 1' })
const word = (seq: number) => event(seq, { type: 'step:chunk', stepName: 'turn 1', chunk: `${seq} ` })
const end = event(9, { type: 'run:complete' })

/** Each event in a task of its own, as over a network. */
async function* told(events: readonly StoredEvent[], isCut = false): Events {
  for (const each of events) {
    await new Promise((resolve) => setTimeout(resolve))
    yield each
  }
  if (isCut) throw new Error('cut off')
}

/** What was shown, each time that it changed. */
function watch(follower: RunFollower): string[] {
  const shown: string[] = []
  follower.subscribe(() => shown.push(follower.get().progress?.turns[0]?.text ?? ''))
  return shown
}

describe('following a run', () => {
  it('shows what is stored at once, and never builds it up again', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const follower = new RunFollower(() => told([begin, word(2), word(3), word(4), end]))
    const shown = watch(follower)
    await vi.advanceTimersByTimeAsync(1000)
    expect(follower.get().progress?.state).toBe('completed')
    expect(shown[0]).toBe('2 3 4 ')
  })

  it('goes on after the last event of an answer that was cut off', async () => {
    const asked: number[] = []
    const follower = new RunFollower((after) => {
      asked.push(after)
      // Told twice, and counted once.
      return told([word(3), word(4), word(5), end])
    })
    follower.adopt(told([begin, word(2), word(3)], true))
    watch(follower)
    await expect.poll(() => follower.get().progress?.state).toBe('completed')
    expect(asked).toEqual([3])
    expect(follower.get().progress?.turns[0]?.text).toBe('2 3 4 5 ')
  })

  it('asks for nothing more when the answer came whole', async () => {
    const follow = vi.fn(() => told([]))
    const follower = new RunFollower(follow)
    follower.adopt(told([begin, word(2), end]))
    watch(follower)
    await expect.poll(() => follower.get().progress?.state).toBe('completed')
    expect(follow).not.toHaveBeenCalled()
  })

  it('says why it is not followed any further, and keeps what was shown', async () => {
    const follower = new RunFollower(() => told([begin, word(2)], true))
    watch(follower)
    await expect.poll(() => follower.get().trouble).toBe('cut off')
    expect(follower.get().progress?.turns[0]?.text).toBe('2 ')
  })

  it('goes on with a run that had ended and was wanted again', async () => {
    const parts = [
      [begin, event(2, { type: 'run:fail', error: 'no' })],
      [event(3, { type: 'run:retry', byHand: true }), end],
    ]
    const asked: number[] = []
    const follower = new RunFollower((after) => {
      asked.push(after)
      return told(parts.shift() ?? [])
    })
    watch(follower)
    await expect.poll(() => follower.get().progress?.state).toBe('failed')
    follower.goOn()
    await expect.poll(() => follower.get().progress?.state).toBe('completed')
    expect(asked.slice(0, 2)).toEqual([0, 2])
  })

  it('goes on with a run that is wanted again before its connection is closed', async () => {
    let close = () => {}
    const isClosed = new Promise<void>((resolve) => {
      close = resolve
    })
    async function* failed(): Events {
      yield* told([begin, event(2, { type: 'run:fail', error: 'no' })])
      await isClosed
    }
    const parts = [failed(), told([event(3, { type: 'run:retry', byHand: true }), end])]
    const follower = new RunFollower(() => parts.shift() ?? told([]))
    watch(follower)
    await expect.poll(() => follower.get().progress?.state).toBe('failed')
    follower.goOn()
    close()
    await expect.poll(() => follower.get().progress?.state).toBe('completed')
  })
})
