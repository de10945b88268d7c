import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { User } from './user'

/** Says what is missing and what to do about it: whoever enabled the tool reads it when the worker starts. */
export class SandboxUnavailable extends Error {
  override readonly name = 'SandboxUnavailable'
}

export function findBwrap(path: string = process.env['PATH'] ?? '/usr/bin'): string | null {
  const candidates = path.split(delimiter).map((folder) => join(folder, 'bwrap'))
  return candidates.find(isProgram) ?? null
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** bwrap itself would run as root too, and then what breaks out of it is root. */
export function userOfSandbox(named: User | undefined): User {
  const user = named ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  if (user.uid !== 0 && user.gid !== 0) return user
  throw new SandboxUnavailable(
    'The sandbox does not run as root. Run the worker as an ordinary user, or name one for the sandbox ' +
      '(SANDBOX_USER=65534:65534).',
  )
}

/** Nothing of the worker's comes along: no environment, no working folder, no open descriptor. */
export function spawnBwrap(bwrap: string, args: readonly string[], user: User): ChildProcess {
  const isOther = process.getuid?.() !== user.uid
  return spawn(bwrap, args, {
    cwd: '/',
    env: {},
    stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    ...(isOther && user),
  })
}
