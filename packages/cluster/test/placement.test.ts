import type { WaitingRun, WorkerRecord } from '@coji/durably-core/storage'
import { describe, expect, it } from 'vitest'
import { choosePlaces, Turns } from '../src/placement'

const AT = '2030-01-01T00:00:00.000Z'
let count = 0

function run(over: Partial<WaitingRun> = {}): WaitingRun {
  count += 1
  const own = { runId: `run-${count}`, version: 1, jobName: 'job', tenant: '', priority: 0, availableAt: AT }
  return { ...own, isSuspect: false, concurrencyKey: null, roomOfKey: 1, ...over }
}

function worker(workerId: string, capacity: number, over: Partial<WorkerRecord> = {}): WorkerRecord {
  return {
    ...{ workerId, capacity, presence: 'active', placedJobs: ['job'], labels: {}, codeVersion: null, firstBeatAt: AT },
    ...{ lastBeatAt: AT, isAlive: true, assigned: 0, running: 0, holdsSuspect: false },
    ...over,
  }
}

const runsOf = (tenant: string, length: number) => Array.from({ length }, () => run({ tenant }))

function hostsOf(workers: readonly WorkerRecord[], runs: readonly WaitingRun[]): readonly string[] {
  return choosePlaces(workers, { runs, loads: [] }, new Turns()).map(({ workerId }) => workerId)
}

describe('places', () => {
  it('are those with the most room, as many as there are', () => {
    expect(hostsOf([worker('a', 1), worker('b', 3)], runsOf('', 5))).toEqual(['b', 'b', 'a', 'b'])
  })

  it('are none with who is gone, drains, is full or does not take the job', () => {
    const gone = worker('a', 5, { isAlive: false })
    const draining = worker('b', 5, { presence: 'draining' })
    const full = worker('c', 5, { running: 3, assigned: 2 })
    const other = worker('d', 5, { placedJobs: ['other'] })
    expect(hostsOf([gone, draining, full, other], runsOf('', 1))).toEqual([])
  })

  it('are shared by tenants, those in hand included', () => {
    const runs = [...runsOf('many', 100), ...runsOf('few', 3), ...runsOf('busy', 9)]
    const loads = [{ tenant: 'busy', held: 4 }]
    const places = choosePlaces([worker('a', 10)], { runs, loads }, new Turns())
    const tenants = places.map(({ run: { tenant } }) => tenant)
    const countOf = (tenant: string) => tenants.filter((each) => each === tenant).length
    expect([countOf('many'), countOf('few'), countOf('busy')]).toEqual([5, 3, 2])
  })

  it('go by turns where nobody has more in hand', () => {
    const turns = new Turns()
    const runs = [...runsOf('a', 9), ...runsOf('b', 9), ...runsOf('c', 9)]
    const served = Array.from({ length: 6 }, () => {
      const [place] = choosePlaces([worker('w', 1)], { runs, loads: [] }, turns)
      return place?.run.tenant
    })
    expect(served).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
  })

  it('go by priority and age within a tenant', () => {
    const [old, young, first] = [run(), run({ availableAt: '2030-01-01T00:00:01.000Z' }), run({ priority: 1 })]
    const places = choosePlaces([worker('a', 9)], { runs: [young, old, first], loads: [] }, new Turns())
    expect(places.map(({ run: { runId } }) => runId)).toEqual([first.runId, old.runId, young.runId])
  })

  it('are as many for a key as it has room, and what is behind goes on', () => {
    const keyed = () => run({ concurrencyKey: 'k', roomOfKey: 2 })
    const runs = [keyed(), keyed(), keyed(), run({ tenant: 'other', concurrencyKey: 'k' }), run()]
    expect(hostsOf([worker('a', 9)], runs).length).toBe(4)
  })

  it('hold one suspect each', () => {
    const suspects = [run({ isSuspect: true }), run({ isSuspect: true }), run({ isSuspect: true })]
    const workers = [worker('a', 9), worker('b', 9, { holdsSuspect: true }), worker('c', 9)]
    expect(hostsOf(workers, suspects)).toEqual(['a', 'c'])
  })
})
