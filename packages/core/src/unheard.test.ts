import { afterEach, expect, it, vi } from 'vitest'
import { InterruptionError, PermanentError } from './errors'
import { hushInterruptions } from './unheard'

const WATCHED = Symbol.for('@coji/durably-core/unheard')
const place = globalThis as { [WATCHED]?: true }
const wasWatched = place[WATCHED]

afterEach(() => {
  vi.unstubAllGlobals()
  if (wasWatched === undefined) delete place[WATCHED]
  else place[WATCHED] = wasWatched
})

type Listen = (type: string, listener: (event: object) => void) => void

it('in a page, what nobody hears of an interruption is kept from the console and from who reports errors', () => {
  const listeners: ((event: object) => void)[] = []
  const addEventListener: Listen = (_type, listener) => listeners.push(listener)
  delete place[WATCHED]
  vi.stubGlobal('process', undefined)
  vi.stubGlobal('addEventListener', addEventListener)
  hushInterruptions()
  hushInterruptions()
  vi.unstubAllGlobals()
  expect(listeners).toHaveLength(1)

  const isHushed = (reason: unknown) => {
    const calls: string[] = []
    const event = {
      reason,
      preventDefault: () => calls.push('default'),
      stopImmediatePropagation: () => calls.push('others'),
    }
    for (const listener of listeners) listener(event)
    return calls.length === 2
  }
  const cause = new InterruptionError('cancelled', 'run')
  const circular = new Error('of itself')
  circular.cause = circular
  const hostile = new Proxy(new Error('hostile'), {
    get: () => {
      throw new Error('no')
    },
  })
  expect(isHushed(cause)).toBe(true)
  expect(isHushed(new Error('wrapped', { cause: new PermanentError('twice', { cause }) }))).toBe(true)
  expect(isHushed(new AggregateError([new Error('another'), cause]))).toBe(true)
  for (const other of [new Error('another'), undefined, null, 'cancelled', circular, hostile])
    expect(isHushed(other)).toBe(false)
})
