import { describe, expect, it } from 'vitest'
import { assertEqual, assertMatches, assertRejects, itemAt } from '../assert'
import { casesFor, STORAGE_CONTRACT } from './index'

describe('casesFor', () => {
  const all = [
    'events',
    'logs',
    'signals',
    'transaction',
    'watch',
    'limits',
    'forks',
    'debounce',
    'archiving',
    'audit',
    'settings',
    'statistics',
    'cluster',
  ] as const

  it('offers every case to a storage with every capability', () => {
    expect(casesFor(all)).toEqual({ cases: STORAGE_CONTRACT, excluded: [] })
  })

  it('leaves out the cases of what a storage lacks', () => {
    const groups = new Set(casesFor(['logs']).cases.map(({ group }) => group))
    expect([...groups].sort()).toEqual(['logs', 'required'])
  })

  it('counts an exclusion with its reason', () => {
    const { cases, excluded } = casesFor([], { 'steps: a run has 5,000 steps': 'too slow over this wire' })
    expect(excluded).toEqual([{ name: 'steps: a run has 5,000 steps', reason: 'too slow over this wire' }])
    expect(cases.length).toBe(casesFor([]).cases.length - 1)
  })

  it('refuses an exclusion without a reason, and one of no case', () => {
    expect(() => casesFor([], { 'steps: a run has 5,000 steps': ' ' })).toThrow('without a reason')
    expect(() => casesFor([], { 'steps: a run has six steps': 'why not' })).toThrow('no case')
    expect(() => casesFor([], { 'watch: a change to a run is a hint': 'not offered' })).toThrow('no case')
  })

  it('has at least 250 cases, each with a name of its own', () => {
    expect(STORAGE_CONTRACT.length).toBeGreaterThanOrEqual(250)
    expect(new Set(STORAGE_CONTRACT.map(({ name }) => name)).size).toBe(STORAGE_CONTRACT.length)
  })
})

describe('assertions', () => {
  it('name the place that differs', () => {
    expect(() => assertEqual({ a: [1, { b: 2 }] }, { a: [1, { b: 3 }] }, 'it')).toThrow('it: a.1.b is 2, expected 3')
    expect(() => assertEqual([1], [1, 2], 'it')).toThrow('it: list has 1 items, expected 2')
    expect(() => assertEqual({ a: 1 }, { a: 1, b: 2 }, 'it')).toThrow('it: b is undefined, expected 2')
    expect(() => assertEqual([], {}, 'it')).toThrow('it: value is [], expected {}')
    expect(() => assertMatches({ a: 1 }, { a: 2 }, 'it')).toThrow('it: a is 1, expected 2')
    expect(() => assertMatches(null, {}, 'it')).toThrow('it: is null')
    expect(() => itemAt([], 0, 'it')).toThrow('it: has 0 items, none at 0')
  })

  it('take what is equal', () => {
    assertEqual({ a: [1, { b: null }] }, { a: [1, { b: null }] }, 'it')
    assertMatches({ a: 1, b: 2 }, { a: 1 }, 'it')
  })

  it('want a rejection with the code', async () => {
    const error = Object.assign(new Error('no'), { code: 'CONFLICT' })
    expect(await assertRejects(Promise.reject(error), 'CONFLICT', 'it')).toBe(error)
    expect(await assertRejects(Promise.reject(error), null, 'it')).toBe(error)
    await expect(assertRejects(Promise.reject(error), 'OTHER', 'it')).rejects.toThrow('should reject with OTHER')
    await expect(assertRejects(Promise.resolve(1), null, 'it')).rejects.toThrow('but resolved with 1')
  })
})
