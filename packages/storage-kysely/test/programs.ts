import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundlePrograms } from '../../../test/bundle-programs'

const OUT = fileURLToPath(new URL(`../node_modules/.cache/durably-test-programs/${process.pid}`, import.meta.url))

const PROGRAMS = fileURLToPath(new URL('./programs', import.meta.url))

/** Bundles the programs beside this file, so that plain Node can run them as processes of their own; returns how to clean up. */
export async function buildPrograms(): Promise<() => void> {
  const files = readdirSync(PROGRAMS).filter((name) => name.endsWith('.ts'))
  await bundlePrograms(Object.fromEntries(files.map((name) => [basename(name, '.ts'), join(PROGRAMS, name)])), OUT)
  return () => rmSync(OUT, { recursive: true, force: true })
}

export interface ProgramResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export function startProgram(name: string, args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [`${OUT}/${name}.mjs`, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
}

export async function finished(child: ChildProcess): Promise<ProgramResult> {
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}
