import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'

/** Of this process: another one may build its own at the same time. */
const OUT = fileURLToPath(new URL(`../../node_modules/.cache/durably-programs/${process.pid}`, import.meta.url))

/** Bundles the programs, so that plain Node can run them as processes of their own. Answers how to remove them. */
export async function buildPrograms(): Promise<() => void> {
  await build({
    entry: [fileURLToPath(new URL('./programs/*.ts', import.meta.url))],
    outDir: OUT,
    format: 'esm',
    platform: 'node',
    config: false,
    silent: true,
    dts: false,
    noExternal: [/^@coji\/durably/, 'croner'],
    external: ['better-sqlite3', 'kysely', 'pg'],
    esbuildOptions: (options) => {
      options.conditions = ['@coji/durably-source']
    },
  })
  return () => rmSync(OUT, { recursive: true, force: true })
}

export function startProgram(name: string, args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [`${OUT}/${name}.js`, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
}

/** Resolves when the program has said something, with what it was. */
export async function spoken(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('The program cannot be heard.')
  const gone = once(child, 'close').then(() => {
    throw new Error('The program ended before it said anything.')
  })
  const [said] = await Promise.race([once(child.stdout, 'data'), gone])
  gone.catch(() => {})
  return String(said).trim()
}

export async function killed(child: ChildProcess): Promise<void> {
  const gone = once(child, 'close')
  child.kill('SIGKILL')
  // One that sleeps has to wake for it.
  child.kill('SIGCONT')
  await gone
}
