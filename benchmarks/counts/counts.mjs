// What a step, a trigger and a task cost in counts, which no noise can change, beside what they may cost: `counts.json`.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { table } from '../../scripts/summary.mjs'
import { freshDatabase } from '../databases.mjs'
import { startPostgres } from '../postgres.mjs'

const LIMITS = fileURLToPath(new URL('./counts.json', import.meta.url))
const PROGRAM = fileURLToPath(new URL('./count.mjs', import.meta.url))
const UPDATE = 'npm run counts -- --update'

/** Another one allocates differently. */
const NODE = Number(process.versions.node.split('.')[0])

export function readLimits() {
  return JSON.parse(readFileSync(LIMITS, 'utf8'))
}

/** `{ step: { promises: 7, … }, trigger, task }` on one database that is empty, counted in a process of its own. */
export async function countOn(driver, { postgres }) {
  const folder = mkdtempSync(join(tmpdir(), 'durably-counts-'))
  try {
    const { file, url } = await freshDatabase(driver, { folder, postgres })
    const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, driver, url ?? file ?? ''])
    return JSON.parse(stdout)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** How far over its limit a count may be. One more promise or statement for each piece of work is always too much. */
function allowanceOf(name, limit) {
  if (name === 'allocated') return limit * 0.15
  if (name === 'sent') return limit * 0.03
  // The rest of the process gets its turn by the clock: how often, depends on the machine.
  if (name === 'immediates') return 0.5
  return Math.min(0.5, Math.max(0.05, limit * 0.1))
}

/** What costs more than it may, and why; bytes are compared on the Node that the limits were counted on. */
export function grownBeyond({ node, costs }, limits, driver) {
  const grown = new Map()
  const works = new Set([costs, limits.costs[driver]].flatMap(Object.keys))
  for (const work of works) {
    const [counts, allowed] = [costs[work] ?? {}, limits.costs[driver][work] ?? {}]
    for (const name of new Set([counts, allowed].flatMap(Object.keys))) {
      if (name === 'allocated' && node !== limits.node) continue
      const trouble = troubleOf(name, counts[name], allowed[name])
      if (trouble !== null) grown.set(`${name} of a ${work} on ${driver}`, trouble)
    }
  }
  return grown
}

function troubleOf(name, count, limit) {
  if (limit === undefined) return `${rounded(count)}, without a limit`
  if (count === undefined) return `no longer counted, was ${limit}`
  return count > limit + allowanceOf(name, limit) ? `${rounded(count)}, was ${limit}` : null
}

/**
 * Compares one database with its limits. A busy machine may add something now and then, and takes nothing away: what
 * seems too much is counted again, and the least counts.
 */
export async function checkCounts(driver, servers) {
  const limits = readLimits()
  const look = async () => grownBeyond({ node: NODE, costs: await countOn(driver, servers) }, limits, driver)
  let grown = await look()
  for (let again = 0; again < 2 && grown.size > 0; again++) {
    const now = await look()
    grown = new Map([...now].filter(([what]) => grown.has(what)))
  }
  return sentencesOf(grown)
}

function sentencesOf(grown) {
  const sentences = [...grown].map(([what, much]) => `${what}: ${much}`)
  return sentences.length === 0 ? [] : [...sentences, `Make it cheaper, or accept the growth: ${UPDATE}`]
}

function rounded(count) {
  if (count >= 100) return Math.round(count)
  return Math.round(count * 100) / 100
}

function tableOf(costs) {
  const rows = Object.entries(costs).flatMap(([driver, works]) =>
    Object.entries(works).flatMap(([work, counts]) =>
      Object.entries(counts).map(([name, count]) => [driver, work, name, rounded(count)]),
    ),
  )
  return table([['on', 'a', 'counts', 'of it'], ...rows])
}

async function count({ isUpdate }) {
  const postgres = await startPostgres()
  const limits = readLimits()
  const costs = {}
  try {
    for (const driver of Object.keys(limits.costs)) {
      costs[driver] = await countOn(driver, { postgres: postgres.url })
    }
  } finally {
    await postgres.end()
  }
  process.stdout.write(`${tableOf(costs)}\n`)
  const asNumbers = (_key, value) => (typeof value === 'number' ? rounded(value) : value)
  if (isUpdate) writeFileSync(LIMITS, `${JSON.stringify({ node: NODE, costs }, asNumbers, 2)}\n`)
  const grown = Object.keys(costs).flatMap((driver) => [
    ...grownBeyond({ node: NODE, costs: costs[driver] }, limits, driver),
  ])
  for (const sentence of isUpdate ? [] : sentencesOf(grown)) process.stdout.write(`${sentence}\n`)
  return isUpdate || grown.length === 0 ? 0 : 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await count({ isUpdate: process.argv.includes('--update') })
}
