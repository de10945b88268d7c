import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('./measure.mjs', import.meta.url))
const PATIENCE_MS = 180_000

/**
 * Measures everything once a round, so that what else the machine does meets all sides. Every other round goes the other
 * way. Answers name → what each round gave; when the signal aborts, as far as it got.
 */
export async function measureInRounds(measurements, { rounds, tell, signal, ...terms }) {
  const results = new Map(measurements.map(({ name }) => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    const turn = round % 2 === 1 ? measurements : measurements.toReversed()
    for (const [at, measurement] of turn.entries()) {
      const result = await inProcessOfItsOwn({ ...measurement, ...terms })
      if (signal.aborted) return results
      results.get(measurement.name).push(result)
      const told = result.error ?? Math.round(result.value)
      tell(`round ${round} of ${rounds}, ${at + 1} of ${turn.length}: ${measurement.name}  ${told}`)
    }
  }
  return results
}

async function inProcessOfItsOwn(question) {
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(question)], { timeout: PATIENCE_MS })
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr']) child[name].on('data', (chunk) => (printed[name] += chunk))
  const [code, signal] = await new Promise((resolve) => child.on('close', (...end) => resolve(end)))
  // Peers print what they like: the measurement is the last line.
  if (code === 0) return JSON.parse(printed.stdout.trim().split('\n').at(-1))
  return { error: `ended with ${signal ?? code}: ${printed.stderr.trim().split('\n').slice(0, 8).join(' | ')}` }
}
