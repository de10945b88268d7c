import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Streams, type Source } from './streams'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

interface Spring extends Source {
  say(piece: string | null): void
  isLeft: boolean
  asked: number
}

function spring(): Spring {
  let answer = (_piece: string | null) => {}
  return {
    isLeft: false,
    asked: 0,
    next() {
      this.asked += 1
      return new Promise((resolve) => {
        answer = resolve
      })
    },
    say: (piece) => answer(piece),
    leave() {
      this.isLeft = true
    },
    isAllowed: async () => true,
  }
}

function open(source: Source) {
  const reported: unknown[] = []
  const streams = new Streams({ keepAliveMs: 1000, recheckMs: 60_000, report: (error) => reported.push(error) })
  const reader = streams.open(source).body?.getReader()
  if (reader === undefined) throw new Error('There is no stream.')
  const read = async () => {
    const { value, done } = await reader.read()
    return done ? null : new TextDecoder().decode(value)
  }
  return { streams, reader, read, reported }
}

describe('a stream', () => {
  it('begins with a sign of life, and has more of them while nothing happens', async () => {
    const { read } = open(spring())
    expect(await read()).toBe(':\n\n')
    const next = read()
    await vi.advanceTimersByTimeAsync(1000)
    expect(await next).toBe(':\n\n')
  })

  it('asks for nothing that nobody reads, and lets go of who does not read', async () => {
    const source = spring()
    const { streams, read } = open(source)
    await vi.advanceTimersByTimeAsync(3999)
    expect({ isLeft: source.isLeft, asked: source.asked, open: streams.size }).toEqual({
      isLeft: false,
      asked: 0,
      open: 1,
    })
    await vi.advanceTimersByTimeAsync(1)
    expect({ isLeft: source.isLeft, open: streams.size, timers: vi.getTimerCount() }).toEqual({
      isLeft: true,
      open: 0,
      timers: 0,
    })
    expect([await read(), await read()]).toEqual([':\n\n', null])
  })

  it('keeps who reads slowly', async () => {
    const source = spring()
    const { streams, read } = open(source)
    await read()
    for (let n = 0; n < 5; n++) {
      source.say(`${n}`)
      await vi.advanceTimersByTimeAsync(3000)
      expect(await read()).toBe(`${n}`)
    }
    expect(streams.size).toBe(1)
  })

  it('leaves its source when its reader leaves, and its timer when it was the last', async () => {
    const source = spring()
    const { streams, reader, read } = open(source)
    await read()
    await reader.cancel()
    source.say('late')
    await vi.advanceTimersByTimeAsync(0)
    expect({ isLeft: source.isLeft, open: streams.size, timers: vi.getTimerCount() }).toEqual({
      isLeft: true,
      open: 0,
      timers: 0,
    })
  })

  it('ends with its source, whether that ends or fails', async () => {
    const ending = spring()
    const one = open(ending)
    await one.read()
    const end = one.read()
    await vi.advanceTimersByTimeAsync(0)
    ending.say(null)
    expect(await end).toBeNull()
    const failing = open({ ...spring(), next: () => Promise.reject(new Error('gone')) })
    await failing.read()
    expect(await failing.read()).toBeNull()
    expect([one.streams.size, failing.streams.size]).toEqual([0, 0])
    expect([one.reported, failing.reported]).toEqual([[], [new Error('gone')]])
  })

  it('ends when it may not be read any more, or nobody can say', async () => {
    for (const isAllowed of [async () => false, () => Promise.reject(new Error('no'))]) {
      const { streams, read } = open({ ...spring(), isAllowed })
      for (let n = 0; n < 60; n++) {
        expect(await read()).toBe(':\n\n')
        await vi.advanceTimersByTimeAsync(1000)
      }
      expect([await read(), await read()]).toEqual([':\n\n', null])
      expect(streams.size).toBe(0)
    }
  })
})
