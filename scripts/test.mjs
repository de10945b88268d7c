import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { installBrowser } from './browser.mjs'
import { installAll } from './install.mjs'
import { checkPackages, packAll } from './packages.mjs'
import { exec, ROOT } from './pnpm.mjs'
import { publishDry } from './publish-dry.mjs'
import { installSandbox } from './sandbox.mjs'
import { checkSizes } from './size.mjs'
import { suitesOf, suiteTable, table, testsOf, testTable, unexplainedSkips, verdict } from './summary.mjs'
import { checkTypes } from './types.mjs'

const REPORT = join(ROOT, '.tmp', 'report')
const VITEST = join(REPORT, 'vitest.json')
const SUITES = join(REPORT, 'suites.jsonl')
const REASONS = join(ROOT, 'test', 'skipped.json')

function vitest(scale) {
  rmSync(REPORT, { recursive: true, force: true })
  mkdirSync(REPORT, { recursive: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${VITEST}`]
  return exec(['vitest', 'run', ...reporters], {
    // Every database: what a developer chose for a moment is not what the project stands for.
    env: { DURABLY_SCALE: scale, DURABLY_REPORT: SUITES, NO_COLOR: '1', DATABASES: '' },
  })
}

/** What everything else needs. */
const FIRST = [
  { name: 'install', run: installAll, isNeeded: true },
  { name: 'browser', run: installBrowser },
  { name: 'sandbox', run: installSandbox },
]

/** What some tests need. */
const BUILT = [
  { name: 'build', run: () => exec(['turbo', 'run', 'build', '--output-logs=errors-only']) },
  { name: 'pack', run: packAll },
]

/** Beside the build, and of what was built beside the tests. They say something only when they fail. */
const OF_SOURCES = [
  { name: 'lint and format', run: () => exec(['biome', 'check', '--error-on-warnings', '.'], { quiet: true }) },
  { name: 'types', run: () => checkTypes({ quiet: true }) },
]
const OF_PACKAGES = [
  { name: 'packages', run: checkPackages },
  { name: 'size', run: checkSizes },
]

/** For the lane before a release: what it looks at beyond the packed packages is their order, and the registry's options. */
const BEFORE_A_RELEASE = [{ name: 'publish, dry run', run: () => publishDry({ quiet: true }) }]

async function runGate({ name, run }) {
  const started = performance.now()
  const code = await run().catch((error) => {
    process.stdout.write(`${error.message}\n`)
    return 1
  })
  return { name, code, seconds: ((performance.now() - started) / 1000).toFixed(1) }
}

async function runInTurn(gates, { isAnnounced }) {
  const done = []
  for (const gate of gates) {
    if (isAnnounced) process.stdout.write(`\n== ${gate.name}\n`)
    done.push(await runGate(gate))
    if (done.at(-1).code !== 0 && gate.isNeeded) break
  }
  return done
}

async function runGates(scale) {
  const first = await runInTurn(FIRST, { isAnnounced: true })
  if (first.length < FIRST.length) return first
  const ofSources = runInTurn(OF_SOURCES, { isAnnounced: false })
  const built = await runInTurn(BUILT, { isAnnounced: true })
  const gates = scale === 'full' ? [...OF_PACKAGES, ...BEFORE_A_RELEASE] : OF_PACKAGES
  const ofPackages = runInTurn(gates, { isAnnounced: false })
  const tests = await runInTurn([{ name: 'tests', run: () => vitest(scale) }], { isAnnounced: true })
  return [...first, ...(await ofSources), ...built, ...(await ofPackages), ...tests]
}

function readOr(path, fallback) {
  return existsSync(path) ? readFileSync(path, 'utf8') : fallback
}

/** A skipped test without a written reason fails the run, as a gate of its own. */
function skipGate(tests, scale) {
  const unexplained = unexplainedSkips(tests, JSON.parse(readOr(REASONS, '{}')), scale)
  for (const test of unexplained) process.stdout.write(`skipped without a reason: ${test.file}: ${test.name}\n`)
  return { name: 'no skip without a reason', code: unexplained.length === 0 ? 0 : 1, seconds: '0.0' }
}

function summarise(gates, scale) {
  const tests = testsOf(JSON.parse(readOr(VITEST, '{"testResults":[]}')), ROOT)
  const suites = suitesOf(readOr(SUITES, ''))
  const all = [...gates, skipGate(tests, scale)]
  const rows = all.map((gate) => [gate.name, gate.code === 0 ? 'ok' : 'FAILED', gate.seconds])
  const parts = [`Summary (${scale})`, table([['gate', 'result', 'seconds'], ...rows])]
  if (tests.length > 0) parts.push(testTable(tests))
  if (suites.length > 0) parts.push(suiteTable(suites))
  const { failed, line } = verdict(tests, all)
  process.stdout.write(`\n${[...parts, line].join('\n\n')}\n`)
  return failed === 0 ? 0 : 1
}

const scale = process.argv.includes('--full') ? 'full' : (process.env.DURABLY_SCALE ?? 'quick')
rmSync(REPORT, { recursive: true, force: true })
process.exitCode = summarise(await runGates(scale), scale)
