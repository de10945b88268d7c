import { spawnSync } from 'node:child_process'

export interface ChildParams {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly timeoutMs?: number
}

/** Runs a program to its end and gives what it printed; its failure is thrown with its output. */
export function runChild({ command, args, cwd, timeoutMs = 120_000 }: ChildParams): string {
  const child = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    timeout: timeoutMs,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (child.status === 0) return child.stdout
  const why = child.error?.message ?? `exit code ${child.status}`
  throw new Error(`${command} ${args.join(' ')}: ${why}\n${child.stdout}\n${child.stderr}`)
}
