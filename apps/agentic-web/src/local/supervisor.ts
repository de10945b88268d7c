import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Place } from './places'

export interface SupervisorOptions {
  /** Where the commands of docker-compose.yml find their files: the folder that has `dist`. */
  readonly folder: string
  readonly onLine: (name: string, line: string) => void
}

const CHECK_EVERY_MS = 150
const RESTART_AFTER_MS = 300

/** Starts processes as Docker would: each with its command and environment, and again when it has died. */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #children = new Map<string, ChildProcess>()
  readonly #starts = new Map<string, number>()
  #isEnding = false

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  start(place: Place, deadWorkerId?: string): void {
    const { folder, onLine } = this.#options
    const { name, service, env } = place
    const starts = (this.#starts.get(name) ?? 0) + 1
    this.#starts.set(name, starts)
    const workerId = `${name}-${process.pid}-${starts}`
    const worker = service.name === 'worker' ? { WORKER_ID: workerId, DEAD_WORKER_ID: deadWorkerId ?? '' } : {}
    const [, ...args] = service.command
    const child = spawn(process.execPath, args, {
      cwd: folder,
      env: { ...given('PATH'), ...given('NODE_EXTRA_CA_CERTS'), HOST: '127.0.0.1', ...env, ...worker },
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ctrl-C is for the supervisor, which ends the others in order.
      detached: true,
    })
    this.#children.set(name, child)
    for (const stream of [child.stdout, child.stderr]) eachLine(stream, (line) => onLine(name, line))
    child.once('exit', (code, signal) => {
      this.#children.delete(name)
      if (this.#isEnding) return
      onLine(name, JSON.stringify({ level: 'warn', message: `ended (${signal ?? code}) and is started again` }))
      setTimeout(() => this.#isEnding || this.start(place, workerId), RESTART_AFTER_MS)
    })
  }

  /** None while it is on its way back. */
  pidOf(name: string): number | undefined {
    return this.#children.get(name)?.pid
  }

  /** Waits until the health check of docker-compose.yml says yes. */
  async ready({ service, env }: Place): Promise<void> {
    const [, , ...args] = service.check
    while (!this.#isEnding) {
      const check = spawn(process.execPath, args, { cwd: this.#options.folder, env: { ...env }, stdio: 'ignore' })
      const [code] = await once(check, 'exit')
      if (code === 0) return
      await sleep(CHECK_EVERY_MS)
    }
  }

  async end(): Promise<void> {
    this.#isEnding = true
    const living = [...this.#children.values()]
    const ended = living.map((child) => once(child, 'exit'))
    for (const child of living) child.kill('SIGTERM')
    await Promise.all(ended)
  }
}

function given(name: string): Record<string, string> {
  const value = process.env[name]
  return value === undefined ? {} : { [name]: value }
}

function eachLine(stream: NodeJS.ReadableStream | null, tell: (line: string) => void): void {
  let rest = ''
  stream?.setEncoding('utf8').on('data', (more: string) => {
    const lines = (rest + more).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) tell(line)
  })
}
