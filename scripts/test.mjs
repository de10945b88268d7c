import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { installBrowser } from './browser.mjs'
import { installAll } from './install.mjs'
import { checkPackages } from './packages.mjs'
import { exec, ROOT } from './pnpm.mjs'
import { publishDry } from './publish-dry.mjs'
import { checkSizes } from './size.mjs'
import { suitesOf, suiteTable, table, testsOf, testTable, unexplainedSkips, verdict } from './summary.mjs'

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

function gatesOf(scale) {
  return [
    { name: 'install', run: installAll, isNeeded: true },
    { name: 'browser', run: installBrowser },
    { name: 'lint and format', run: () => exec(['biome', 'check', '--error-on-warnings', '.']) },
    {
      name: 'types',
      run: () => exec(['turbo', 'run', 'typecheck', 'typecheck:workspace', '--output-logs=errors-only']),
    },
    { name: 'build', run: () => exec(['turbo', 'run', 'build', '--output-logs=errors-only']) },
    { name: 'packages', run: checkPackages },
    { name: 'publish, dry run', run: () => publishDry({ quiet: true }) },
    { name: 'size', run: checkSizes },
    { name: 'tests', run: () => vitest(scale) },
  ]
}

async function runGates(scale) {
  const done = []
  for (const gate of gatesOf(scale)) {
    process.stdout.write(`\n== ${gate.name}\n`)
    const started = performance.now()
    const code = await gate.run().catch((error) => {
      process.stdout.write(`${error.message}\n`)
      return 1
    })
    done.push({ name: gate.name, code, seconds: ((performance.now() - started) / 1000).toFixed(1) })
    if (code !== 0 && gate.isNeeded) break
  }
  return done
}

function readOr(path, fallback) {
  return existsSync(path) ? readFileSync(path, 'utf8') : fallback
}

/** A skipped test without a written reason fails the run, as a gate of its own. */
function skipGate(tests) {
  const unexplained = unexplainedSkips(tests, JSON.parse(readOr(REASONS, '{}')))
  for (const test of unexplained) process.stdout.write(`skipped without a reason: ${test.file}: ${test.name}\n`)
  return { name: 'no skip without a reason', code: unexplained.length === 0 ? 0 : 1, seconds: '0.0' }
}

function summarise(gates, scale) {
  const tests = testsOf(JSON.parse(readOr(VITEST, '{"testResults":[]}')), ROOT)
  const suites = suitesOf(readOr(SUITES, ''))
  const all = [...gates, skipGate(tests)]
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
