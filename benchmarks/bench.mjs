import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { installAll } from '../scripts/install.mjs'
import { exec, pnpm, ROOT } from '../scripts/pnpm.mjs'
import { startPostgres } from './postgres.mjs'
import { measurementTable, summaryOf, verdictOf, verdictTable } from './report.mjs'
import { measureInRounds } from './rounds.mjs'
import { measurementsOf, PEERS, ROWS } from './rows.mjs'

const USAGE = `npm run bench -- [--only <part of a work or of a database>]… [--rounds 3] [--quick] [--no-peers] [--json]
works: ${[...new Set(ROWS.map(({ work }) => work))].join(', ')}`
const RESULT = join(ROOT, '.tmp', 'bench.json')
const TMPFS = 0x01021994

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    rounds: { type: 'string', default: '3' },
    quick: { type: 'boolean', default: false },
    'no-peers': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

/** Progress is for who watches: what is printed to standard output is the result. */
function tell(line) {
  process.stderr.write(`${line}\n`)
}

function chosenRows() {
  const words = options.only ?? []
  const isChosen = ({ work, on, what }) => words.every((word) => [work, on, what].some((text) => text.includes(word)))
  return ROWS.filter(isChosen)
}

/** The packages as users get them, and what they are compared with: which is no part of the workspace. */
async function prepare() {
  for (const step of [
    installAll,
    () => exec(['turbo', 'run', 'build', '--output-logs=errors-only'], { quiet: true }),
  ]) {
    if ((await step()) !== 0) throw new Error('The workspace cannot be built.')
  }
  return options['no-peers'] ? false : installPeers()
}

async function installPeers() {
  const flags = [
    '--config.fetch-retries=1',
    '--ignore-workspace',
    '--ignore-scripts',
    '--frozen-lockfile',
    '--prefer-offline',
  ]
  const code = await pnpm(['--dir', 'benchmarks/peers', 'install', ...flags], { quiet: true })
  if (code !== 0) tell('The peers cannot be installed: is there a network? Only durably and the limits are measured.')
  return code === 0
}

function filesFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'durably-bench-'))
  if (statfsSync(folder).type === TMPFS) tell(`${folder} is in memory: what is "safe" costs nothing there. Set TMPDIR.`)
  return folder
}

/** Who has seen enough gets the table of what there is. */
function untilInterrupted() {
  const controller = new AbortController()
  process.once('SIGINT', () => controller.abort())
  return controller.signal
}

async function measure(measurements) {
  const folder = filesFolder()
  const needsPostgres = measurements.some(({ on }) => on === 'postgres')
  const postgres = needsPostgres ? await startPostgres() : { url: null, end: async () => {} }
  try {
    const terms = { rounds: Number(options.rounds), isQuick: options.quick, folder, postgres: postgres.url }
    return await measureInRounds(measurements, { ...terms, tell, signal: untilInterrupted() })
  } finally {
    await postgres.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function bench() {
  const rows = chosenRows()
  if (options.help || rows.length === 0) return void process.stdout.write(`${USAGE}\n`)
  const hasPeers = await prepare()
  const measurements = measurementsOf(rows).filter(({ engine }) => hasPeers || !PEERS.has(engine))
  const results = await measure(measurements)
  const verdicts = rows.map((row) => verdictOf(row, results))
  const machine = `${cpus().length} cores, ${cpus()[0]?.model}, Node ${process.version}, ${options.rounds} rounds`
  const sides = measurements.map((one) => ({
    ...one,
    ...summaryOf(results.get(one.name)),
    rounds: results.get(one.name),
  }))
  const json = `${JSON.stringify({ machine, isQuick: options.quick, rows: verdicts, sides }, null, 2)}\n`
  mkdirSync(dirname(RESULT), { recursive: true })
  writeFileSync(RESULT, json)
  if (options.json) return void process.stdout.write(json)
  const parts = [machine, verdictTable(verdicts), measurementTable(measurements, results)]
  process.stdout.write(`${parts.join('\n\n')}\n\nAll of it as JSON: .tmp/bench.json\n`)
}

await bench()
