import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'

const OUT = fileURLToPath(new URL('../node_modules/.cache/durably-test-programs', import.meta.url))

/** Bundles the programs beside this file, so that plain Node can run them as processes of their own. */
export async function buildPrograms(): Promise<void> {
  await build({
    entry: [fileURLToPath(new URL('./programs/*.ts', import.meta.url))],
    outDir: OUT,
    format: 'esm',
    platform: 'node',
    config: false,
    silent: true,
    dts: false,
    noExternal: [/^@coji\/durably/],
    external: ['better-sqlite3', 'kysely', 'pg', /^@libsql\//],
    esbuildOptions: (options) => {
      options.conditions = ['@coji/durably-source']
    },
  })
}

export interface ProgramResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export function startProgram(name: string, args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [`${OUT}/${name}.js`, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
}

export async function finished(child: ChildProcess): Promise<ProgramResult> {
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}
