import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { promisify } from 'node:util'

/**
 * As the global set-up of a project: where the tests of a run put their files, and how fast its machine is. Settled
 * once for all projects and processes of a run of vitest.
 */
export async function setup(): Promise<void> {
  if (process.env['DURABLY_PACE'] !== undefined) return
  makeFolder()
  process.env['TMPDIR'] = FOLDER
  process.env['DURABLY_PACE'] = (await measurePace()).toFixed(2)
}

/** Of Linux: a thousand tests wait for a thousand disks no longer than it takes to write to memory. */
const MEMORY = '/dev/shm'
const LEAST_FREE_BYTES = 2e9

function inMemory(): string | null {
  if (process.platform !== 'linux') return null
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= LEAST_FREE_BYTES ? MEMORY : null
  } catch {
    return null
  }
}

const PREFIX = 'durably-tests-'

const PARENT = inMemory() ?? tmpdir()

/** Where the tests of this run of vitest put their files, for configurations too, which are read before there is one. */
export const FOLDER = join(PARENT, `${PREFIX}${process.pid}`)

/** Removed at the end, with what killed browsers and processes left in it; after a run that was killed, by the next. */
function makeFolder(): void {
  for (const name of readdirSync(PARENT)) {
    if (name.startsWith(PREFIX) && !isAlive(Number(name.slice(PREFIX.length)))) remove(join(PARENT, name))
  }
  mkdirSync(FOLDER, { recursive: true })
  process.once('exit', () => remove(FOLDER))
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // Of another user, or still being written to: the next run tries again.
  }
}

/** What the times in the tests were chosen on takes so long for it. */
const REFERENCE_MS = 300
const MOST = 8

/** Starts a process on every core and one more, as the tests do, and gives each something to do. */
const WORK = 'let sum = 0; for (let n = 0; n < 2e8; n++) sum += n % 7; process.stdout.write(String(sum))'

async function measurePace(): Promise<number> {
  const startedAt = performance.now()
  const processes = Array.from({ length: availableParallelism() }, () =>
    promisify(execFile)(process.execPath, ['-e', WORK]),
  )
  await Promise.all(processes)
  return Math.min(MOST, Math.max(1, (performance.now() - startedAt) / REFERENCE_MS))
}
