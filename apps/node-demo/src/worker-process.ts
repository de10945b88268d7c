import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type WorkerConfig, type WorkerMessage, workerMessage } from './worker-config'

const ENTRY = fileURLToPath(new URL('./worker.js', import.meta.url))

export interface WorkerProcess {
  readonly pid: number
  readonly workerId: string
  onStep(listener: (message: WorkerMessage) => void): void
  /** Resolves when the process is gone, for whatever reason. */
  readonly gone: Promise<void>
  /** Throws when the process ended although nobody asked it to. */
  check(): void
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
  /** Lets it finish what it is doing. */
  stop(): Promise<void>
}

export function startWorker(config: WorkerConfig): WorkerProcess {
  const child = fork(ENTRY, [JSON.stringify(config)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] })
  let complaints = ''
  let isGone = false
  const gone = new Promise<void>((resolve) => {
    const leave = (how: string): void => {
      complaints = `${how}\n${complaints}`.trimEnd()
      isGone = true
      resolve()
    }
    child.once('close', (code, signal) => leave(`The worker ended (${signal ?? code}).`))
    child.once('error', (error) => leave(`The worker did not start: ${error.message}`))
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-4_000)
  })
  return {
    pid: child.pid ?? 0,
    workerId: config.workerId,
    gone,
    onStep: (listener) => {
      child.on('message', (message) => listener(workerMessage.parse(message)))
    },
    check: () => {
      if (isGone) throw new Error(complaints)
    },
    kill: async () => {
      child.kill('SIGKILL')
      await gone
    },
    stop: async () => {
      if (child.connected) child.send('stop')
      await gone
    },
  }
}
