import { table } from '../scripts/summary.mjs'
import { besidesOf, limitOf, ours, peersOf } from './rows.mjs'
import { WORKS } from './works.mjs'

/** The middle of what the rounds gave, how far apart they were, and the durability that the connection had. */
export function summaryOf(results = []) {
  const values = sortedNumbers(results, 'value')
  const error = results.find((result) => result.error !== undefined)?.error ?? null
  if (values.length === 0) return { median: null, least: null, most: null, cpuMicros: null, durability: null, error }
  const durability = results.find((result) => result.durability !== undefined)?.durability ?? null
  const cpuMicros = medianOf(sortedNumbers(results, 'cpuMicros'))
  return { median: medianOf(values), least: values[0], most: values.at(-1), cpuMicros, durability, error }
}

function sortedNumbers(results, name) {
  return results.flatMap(({ [name]: value }) => (typeof value === 'number' ? [value] : [])).sort((a, b) => a - b)
}

function medianOf(sorted) {
  if (sorted.length === 0) return null
  const middle = sorted.length / 2
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** What a row says: ours, how much of the limit that is, how many times the best peer, and whether the goal is reached. */
export function verdictOf(row, results) {
  const { isMoreBetter, unit } = WORKS[row.work]
  const summary = ({ name }) => summaryOf(results.get(name))
  const now = summary(ours(row))
  const limit = row.limit === undefined ? null : perPiece(summary(limitOf(row)).median, row)
  const peers = peersOf(row).map((peer) => ({ engine: peer.engine, ...summary(peer) }))
  const best = bestOf(peers, isMoreBetter)
  const verdict = {
    what: row.what,
    on: row.on,
    unit,
    now,
    limit,
    best,
    besides: besidesOf(row).map((side) => ({ engine: side.engine, ...summary(side) })),
    ofLimit: ratio(now.median, limit, isMoreBetter),
    ofPeer: isMoreBetter ? quotient(now.median, best?.median) : quotient(best?.median, now.median),
    goal: row.goal ?? null,
  }
  return { ...verdict, isReached: isReached(verdict) }
}

function perPiece(median, { per = 1 }) {
  return median === null ? null : median * per
}

/** Of two rates how many times as fast; of a time (ms) and a rate, how many pieces of the limit fit into it. */
function ratio(value, limit, isMoreBetter) {
  if (value === null || limit === null) return null
  return isMoreBetter ? value / limit : (value / 1000) * limit
}

function quotient(one, other) {
  return typeof one === 'number' && typeof other === 'number' ? one / other : null
}

function bestOf(peers, isMoreBetter) {
  const measured = peers.filter(({ median }) => median !== null)
  const sorted = measured.sort((a, b) => (isMoreBetter ? b.median - a.median : a.median - b.median))
  return sorted[0] ?? null
}

const GOALS = {
  ofLimit: { isMet: ({ ofLimit }, goal) => ofLimit >= goal, words: (goal) => `≥ ${goal} of the limit` },
  withinLimits: { isMet: ({ ofLimit }, goal) => ofLimit <= goal, words: (goal) => `≤ ${goal} raw commits` },
  ofPeer: { isMet: ({ ofPeer }, goal) => ofPeer >= goal, words: (goal) => `≥ ${goal} × the peer` },
  atMost: { isMet: ({ now }, goal) => now.median <= goal, words: (goal) => `≤ ${goal}` },
}
const NEEDS = { ofLimit: 'ofLimit', withinLimits: 'ofLimit', ofPeer: 'ofPeer', atMost: 'now' }

/** `null` when there is no goal, or what it is about was not measured. */
function isReached(verdict) {
  const goals = Object.entries(verdict.goal ?? {})
  const isKnown = goals.every(([name]) => verdict[NEEDS[name]] !== null) && verdict.now.median !== null
  if (goals.length === 0 || !isKnown) return null
  return goals.every(([name, goal]) => GOALS[name].isMet(verdict, goal))
}

const MARKS = new Map([
  [true, 'yes'],
  [false, '✗ NO'],
  [null, '–'],
])

export function verdictTable(verdicts) {
  const head = ['work', 'on', 'now', 'spread', 'of the limit', 'against the best peer', 'must reach', 'reached']
  const rows = verdicts.map((verdict) => [
    verdict.what,
    verdict.on,
    `${shown(verdict.now.median)} ${verdict.unit}`,
    spread(verdict.now),
    withBase(verdict.ofLimit, verdict.limit),
    verdict.best === null ? '–' : `${shown(verdict.ofPeer)} × ${verdict.best.engine} (${shown(verdict.best.median)})`,
    wordsOf(verdict.goal),
    MARKS.get(verdict.isReached),
  ])
  return table([head, ...rows])
}

function withBase(part, limit) {
  return part === null ? '–' : `${shown(part)} of ${shown(limit)}`
}

function wordsOf(goal) {
  const words = Object.entries(goal ?? {}).map(([name, value]) => GOALS[name].words(value))
  return words.length === 0 ? '–' : words.join(', ')
}

/** Every measurement by itself, with the durability that its connection told. */
export function measurementTable(measurements, results) {
  const rows = measurements.map(({ work, engine, on, name }) => {
    const summary = summaryOf(results.get(name))
    return [
      engine,
      work,
      on,
      shown(summary.median),
      spread(summary),
      shown(summary.cpuMicros),
      summary.error ?? summary.durability ?? '–',
    ]
  })
  return table([['side', 'work', 'on', 'median', 'spread', 'CPU µs each', 'durability of the connection'], ...rows])
}

function spread({ least, most }) {
  return least === null ? '–' : `${shown(least)} … ${shown(most)}`
}

/** Three digits say all that a measurement knows. */
export function shown(value) {
  if (value === null || value === undefined) return '–'
  return Number(value.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 3 })
}
