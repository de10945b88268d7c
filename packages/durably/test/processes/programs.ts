import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { bundlePrograms } from '../../../../test/bundle-programs'
import type { Message } from './programs/parent'

/** Below the package, so that the bundles find its drivers. */
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/durably-programs', import.meta.url))

const PROGRAMS = {
  mortal: './programs/mortal.ts',
  poisoned: './programs/poisoned.ts',
  crowded: './programs/crowded.ts',
  limited: './programs/limited.ts',
  contender: './programs/contender.ts',
  sleeper: './programs/sleeper.ts',
  archiver: './programs/archiver.ts',
  'locked-out': './programs/locked-out.ts',
  interrupted: './programs/interrupted.ts',
  labourer: '../postgres/programs/labourer.ts',
  'late-sleeper': '../postgres/programs/late-sleeper.ts',
  leaver: '../postgres/programs/leaver.ts',
  'queue-worker': '../queue/programs/queue-worker.ts',
} as const

type ProgramName = keyof typeof PROGRAMS

/** A process of its own. */
export interface Program {
  readonly pid: number
  /** The next message of the type that nobody has waited for yet. Rejects when the process ends without it. */
  next(type: string): Promise<Message>
  onMessage(listener: (message: Message) => void): void
  write(line: string): void
  /** Lets a program go on that blocks at its gate. */
  openGate(): void
  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
  /** Resolves when the process is gone and all it said has been heard. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly stderr: string }>
}

/** Bundles the programs of a test file from the sources and ends what it starts. */
export function usePrograms(...names: readonly ProgramName[]): (name: ProgramName, config: object) => Program {
  const out = `${CACHE}/${process.pid}-${names.join('-')}`
  const started = new Set<Program>()
  const paths = names.map((name) => [name, fileURLToPath(new URL(PROGRAMS[name], import.meta.url))])
  beforeAll(() => bundlePrograms(Object.fromEntries(paths), out))
  afterEach(async () => {
    for (const program of started) program.signal('SIGKILL')
    await Promise.all([...started].map((program) => program.ended))
  })
  afterAll(() => rmSync(out, { recursive: true, force: true }))
  return (name, config) => {
    const program = startProgram(`${out}/${name}.mjs`, config)
    started.add(program)
    void program.ended.then(() => started.delete(program))
    return program
  }
}

interface Waiting {
  readonly type: string
  readonly resolve: (message: Message) => void
  readonly reject: (error: Error) => void
}

function startProgram(path: string, config: object): Program {
  const child = spawn(process.execPath, [path, JSON.stringify(config)], { stdio: ['pipe', 'pipe', 'pipe', 'pipe'] })
  const listeners: ((message: Message) => void)[] = []
  const unread: Message[] = []
  const waiting = new Set<Waiting>()
  let stderr = ''

  function hear(message: Message): void {
    for (const listener of listeners) listener(message)
    const waiter = [...waiting].find(({ type }) => type === message.type)
    if (waiter === undefined) unread.push(message)
    else {
      waiting.delete(waiter)
      waiter.resolve(message)
    }
  }

  child.stdout.setEncoding('utf8').on(
    'data',
    byLine((line) => hear(JSON.parse(line) as Message)),
  )
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-8000)
  })
  const gate = child.stdio[3] as Writable
  // Whoever writes to a process that was killed a moment ago has nothing to handle.
  for (const pipe of [child.stdin, gate]) pipe.on('error', () => {})
  const ended = new Promise<Awaited<Program['ended']>>((resolve) => {
    child.once('close', (code, signal) => {
      for (const { type, reject } of waiting)
        reject(new Error(`It ended (${signal ?? code}) before "${type}". ${stderr}`))
      waiting.clear()
      resolve({ code, signal, stderr })
    })
  })
  return {
    pid: child.pid ?? 0,
    ended,
    next(type) {
      const index = unread.findIndex((message) => message.type === type)
      const [message] = index === -1 ? [] : unread.splice(index, 1)
      if (message !== undefined) return Promise.resolve(message)
      return new Promise((resolve, reject) => waiting.add({ type, resolve, reject }))
    },
    onMessage: (listener) => void listeners.push(listener),
    write: (line) => void child.stdin.write(`${line}\n`),
    openGate: () => void gate.write('.'),
    signal: (name) => void child.kill(name),
  }
}

function byLine(hear: (line: string) => void): (text: string) => void {
  let rest = ''
  return (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) hear(line)
  }
}
