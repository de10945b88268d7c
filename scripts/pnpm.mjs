import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))

const QUIET = {
  CI: 'true',
  COREPACK_ENABLE_DOWNLOAD_PROMPT: '0',
  NO_UPDATE_NOTIFIER: '1',
  TURBO_TELEMETRY_DISABLED: '1',
  TURBO_NO_UPDATE_NOTIFIER: '1',
  DO_NOT_TRACK: '1',
}

/** The version of pnpm that the workspace is pinned to: `packageManager` of the root manifest. */
export function pinnedPnpm() {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).packageManager
}

/**
 * Runs a program of this machine in the workspace and answers its exit code. There is no standard input, so that
 * nothing can ask; `quiet` shows the output only when the program fails.
 */
export function run(command, args, options = {}) {
  const { env = {}, quiet = false, input = 'ignore' } = options
  const output = quiet ? 'pipe' : 'inherit'
  const printed = []
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: ROOT,
      env: { ...process.env, ...QUIET, ...env },
      stdio: [input, output, output],
      shell: process.platform === 'win32',
    })
    const hangUp = input === 'inherit' ? leaveSignalsTo(child) : () => {}
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => printed.push(chunk))
    child.on('error', (error) => printed.push(`${command} did not start: ${error.message}\n`))
    child.on('close', (code, signal) => {
      hangUp()
      const result = signal === null ? code : 128 + constants.signals[signal]
      if (result !== 0) for (const chunk of printed) process.stderr.write(chunk)
      resolve(result)
    })
  })
}

/** A program that has the terminal cleans it up itself: nobody may end before it does. */
function leaveSignalsTo(child) {
  // The terminal sends Ctrl-C to the whole group; the others come to this process alone.
  const listeners = { SIGINT: () => {}, SIGTERM: () => child.kill('SIGTERM'), SIGHUP: () => child.kill('SIGHUP') }
  for (const [signal, listener] of Object.entries(listeners)) process.on(signal, listener)
  return () => {
    for (const [signal, listener] of Object.entries(listeners)) process.off(signal, listener)
  }
}

/** Runs pnpm in the pinned version, fetched by npm: nothing but Node and npm has to be installed. */
export function pnpm(args, options) {
  return run('npx', ['--yes', pinnedPnpm(), ...args], options)
}

/** Runs a program that the workspace depends on. */
export function exec(args, options) {
  return pnpm(['--silent', 'exec', ...args], options)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await pnpm(process.argv.slice(2))
}
