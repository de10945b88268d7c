import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './pnpm.mjs'

const FOLDER = join(ROOT, 'packages', 'core', 'src', 'testing')
const WRITTEN = join(FOLDER, 'simulation', 'seeds-that-find.ts')
const SAID = /^seeds-that-find\.ts could say: (?<line>'(?<mutant>.+)': \d+,)/gm

/** Plays the simulation, and writes down the seeds that find what the ones before no longer find. */
const { stdout, status } = spawnSync(
  'npx',
  ['vitest', 'run', '--project', 'packages', join(FOLDER, 'simulation.test.ts')],
  { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28, shell: process.platform === 'win32' },
)
let text = readFileSync(WRITTEN, 'utf8')
let count = 0
for (const { groups } of stdout.matchAll(SAID)) {
  const { line, mutant } = groups
  const at = text.split('\n').findIndex((known) => known.startsWith(`  '${mutant}': `))
  const lines = text.split('\n')
  if (at === -1) lines.splice(lines.lastIndexOf('}'), 0, `  ${line}`)
  else lines[at] = `  ${line}`
  text = lines.join('\n')
  count += 1
}
writeFileSync(WRITTEN, text)
process.stdout.write(status === 0 ? `${count} seeds written.\n` : `${stdout}\nThe simulation has failed.\n`)
process.exitCode = status ?? 1
