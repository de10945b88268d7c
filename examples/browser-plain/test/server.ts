import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export interface ExampleServer {
  readonly url: string
  close(): Promise<void>
}

/** The example's own server, on a free port. */
export async function startServer(): Promise<ExampleServer> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'serve.mjs')], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return { url: await firstLine(child), close: () => end(child) }
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('The server has no output.')
  const lines = createInterface(child.stdout)
  const started = once(lines, 'line').then(([line]) => String(line))
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`serve.mjs ended with ${code} before it served. Is everything built? npm run build`)
  })
  return Promise.race([started, ended])
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = once(child, 'exit')
  child.kill()
  await ended
}
