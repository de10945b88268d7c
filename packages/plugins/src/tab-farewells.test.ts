import { afterEach, expect, it, vi } from 'vitest'
import { createFarewells } from './tab-farewells'

const LATER_MS = 120_000

/** As `localStorage` of a browser: its keys are its properties. */
class Items {
  getItem(key: string): string | null {
    return Object.hasOwn(this, key) ? String(Reflect.get(this, key)) : null
  }
  setItem(key: string, value: string): void {
    Reflect.set(this, key, value)
  }
  removeItem(key: string): void {
    Reflect.deleteProperty(this, key)
  }
}

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

it('keeps word for as long as there are runs to take back, and for a while after that', () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const items = new Items()
  vi.stubGlobal('localStorage', items)
  items.setItem('of the application', '1')
  const farewells = createFarewells('group')
  for (const workerId of ['owner', 'idle', 'back']) farewells.leave(workerId)
  farewells.takeBack('back')
  farewells.sweep(new Set(['owner']))
  expect(['owner', 'idle', 'back', 'other'].map((id) => farewells.has(id))).toEqual([true, true, false, false])
  vi.setSystemTime(Date.now() + LATER_MS)
  farewells.sweep(new Set(['owner']))
  expect(['owner', 'idle'].map((id) => farewells.has(id))).toEqual([true, false])
  createFarewells('other group').sweep(new Set())
  expect(farewells.has('owner')).toBe(true)
  expect(items.getItem('of the application')).toBe('1')
})

it.each([
  ['not there', undefined],
  [
    'forbidden',
    {
      getItem: () => {
        throw new Error('SecurityError')
      },
      setItem: () => {
        throw new Error('QuotaExceededError')
      },
    },
  ],
])('does without where the storage is %s', (_what, items) => {
  vi.stubGlobal('localStorage', items)
  const farewells = createFarewells('group')
  farewells.leave('worker')
  farewells.sweep(new Set())
  farewells.takeBack('worker')
  expect(farewells.has('worker')).toBe(false)
})
