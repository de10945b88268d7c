import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, inject, onTestFinished } from 'vitest'
import { createDatabase } from '../../../test/postgres'
import { inLane } from '../../../test/scale'
import { main } from '../src/main'

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** A process of its own. */
export interface Program {
  readonly child: ChildProcess
  /** What it has printed so far. */
  readonly out: () => string
  /** Resolves when it has printed that. */
  said(what: RegExp): Promise<RegExpExecArray>
  readonly ended: Promise<Ended>
}

export interface Programs {
  start(name: 'durably' | 'worker', args: readonly string[], options?: StartOptions): Program
  /** The command, to its end. */
  durably(...args: readonly string[]): Promise<Ended>
  /** The bundles are here. */
  readonly folder: string
}

interface StartOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Where the bundles have been copied to. */
  readonly folder?: string
}

/** The bundled programs; ends what a file of tests leaves running. */
export function usePrograms(): Programs {
  const bundles = inject('programs')
  const started = new Set<ChildProcess>()
  afterAll(async () => {
    const left = [...started].map((child) => once(child, 'close'))
    for (const child of started) child.kill('SIGKILL')
    await Promise.all(left)
  })
  const start: Programs['start'] = (name, args, { folder = bundles, env = {} } = {}) => {
    const program = run(`${folder}/${name}.mjs`, args, env)
    started.add(program.child)
    void program.ended.then(() => started.delete(program.child))
    return program
  }
  return { start, folder: bundles, durably: (...args) => start('durably', args).ended }
}

function run(path: string, args: readonly string[], env: Readonly<Record<string, string>>): Program {
  const child = spawn(process.execPath, [path, ...args], { env: { ...process.env, DURABLY_DB: '', ...env } })
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    out += more
  })
  child.stderr.setEncoding('utf8').on('data', (more: string) => {
    err += more
  })
  const closed = once(child, 'close')
  return {
    child,
    out: () => out,
    async said(what) {
      for (;;) {
        const found = what.exec(out)
        if (found !== null) return found
        if (child.exitCode !== null) throw new Error(`It ended before it said ${what}:\n${out}\n${err}`)
        await Promise.race([once(child.stdout, 'data'), closed])
      }
    },
    ended: closed.then(([code]) => ({ code, out, err })),
  }
}

export interface Screen {
  readonly columns?: number
  /** What is typed when something is asked. */
  readonly answer?: string
  readonly env?: Readonly<Record<string, string>>
}

/** The command in this process, on a screen if one is given. */
export async function call(args: readonly string[], screen?: Screen): Promise<Ended> {
  const [out, err] = [new PassThrough(), new PassThrough()]
  const isTTY = screen !== undefined
  const stdin = Object.assign(new PassThrough(), { isTTY: screen?.answer !== undefined })
  if (screen?.answer !== undefined) stdin.write(`${screen.answer}\n`)
  const stdout = Object.assign(out, { isTTY, columns: screen?.columns ?? 80 })
  const streams = { stdin, stdout, stderr: err, env: screen?.env ?? {}, signal: new AbortController().signal }
  const code = await main(args, streams)
  return { code, out: String(out.read() ?? ''), err: String(err.read() ?? '') }
}

/** What the application says of the runs that it has triggered. */
export interface Ids {
  readonly done: string
  readonly refused: readonly string[]
  readonly talking: string
  readonly late: string
  readonly unknown: string
}

export const PLACES = [
  {
    name: 'SQLite',
    open: async () => {
      const { file, remove } = tempFile()
      return { address: file, dispose: async () => remove() }
    },
  },
  {
    name: 'Postgres',
    open: async () => {
      const { url, drop } = await createDatabase()
      return { address: url, dispose: drop }
    },
  },
] as const

/** The commands are tried on both in either lane. */
export const IN_LANE = inLane<(typeof PLACES)[number]>(PLACES, ({ name }) => name === 'SQLite')

export function tempFile(): { readonly file: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'durably-cli-'))
  return { file: join(folder, 'app.db'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** A path in a folder that is gone after the test. */
export function newFile(): string {
  const { file, remove } = tempFile()
  onTestFinished(remove)
  return file
}
