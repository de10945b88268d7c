import { afterEach, expect, it, vi } from 'vitest'
import { ExecutionAbortedError, PermanentError } from '../base/errors'
import { hushInterruptions } from './unheard'

afterEach(() => vi.unstubAllGlobals())

interface Listening {
  readonly listener: (event: object) => void
  readonly options: unknown
}

it('in a page, what nobody hears of an interruption is kept from the console and from who reports errors', () => {
  const listening: Listening[] = []
  const addEventListener = (_type: string, listener: Listening['listener'], options: unknown) =>
    listening.push({ listener, options })
  vi.stubGlobal('process', undefined)
  vi.stubGlobal('addEventListener', addEventListener)
  hushInterruptions()
  hushInterruptions()
  vi.unstubAllGlobals()
  expect(listening[0]?.options).toEqual({ capture: true })
  // A page takes it once.
  expect(new Set(listening.map(({ listener }) => listener)).size).toBe(1)

  const isHushed = (reason: unknown) => {
    const calls: string[] = []
    const event = {
      reason,
      preventDefault: () => calls.push('default'),
      stopImmediatePropagation: () => calls.push('others'),
    }
    listening[0]?.listener(event)
    return calls.length === 2
  }
  const cause = new ExecutionAbortedError('cancelled', 'run')
  const circular = new Error('of itself')
  circular.cause = circular
  const hostile = new Proxy(new Error('hostile'), {
    get: () => {
      throw new Error('no')
    },
  })
  expect(isHushed(cause)).toBe(true)
  expect(isHushed(new Error('wrapped', { cause: new PermanentError('twice', { cause }) }))).toBe(true)
  expect(isHushed(new AggregateError([cause, new Error('wrapped', { cause })]))).toBe(true)
  expect(isHushed(new AggregateError([], 'none', { cause }))).toBe(true)
  const mixed = new AggregateError([new Error('another'), cause], 'two', { cause })
  for (const other of [
    mixed,
    new AggregateError([]),
    new Error('another'),
    undefined,
    null,
    'cancelled',
    circular,
    hostile,
  ])
    expect(isHushed(other)).toBe(false)
})
