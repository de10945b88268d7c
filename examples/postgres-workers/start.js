import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const WORKERS = Number(process.env.WORKERS ?? 3)

/** A Postgres of our own. It ends when its input does. */
async function startPostgres() {
  const program = join(import.meta.dirname, 'local-postgres.js')
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
  const [url] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit').then(() => [''])])
  if (String(url) === '') process.exit(1)
  const stop = async () => {
    child.stdin.end()
    await once(child, 'exit')
  }
  return { url: String(url).trim(), stop }
}

const postgres = process.env.DATABASE_URL === undefined ? await startPostgres() : null
const env = postgres === null ? process.env : { ...process.env, DATABASE_URL: postgres.url }

const children = new Set()
let isEnding = false
let names = 0

function start(program, ...args) {
  const child = spawn(process.execPath, [join(import.meta.dirname, program), ...args], { env, stdio: 'inherit' })
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

function startWorker(...dead) {
  names += 1
  const name = `worker-${names}`
  start('worker.js', name, ...dead).once('exit', (code, signal) => {
    if (isEnding) return
    console.log(`${name} is dead (${signal ?? code})`)
    startWorker(name)
  })
}

async function end() {
  if (isEnding) return
  isEnding = true
  const ended = [...children].map((child) => once(child, 'exit'))
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(ended)
  await postgres?.stop()
}

process.once('SIGINT', end)
process.once('SIGTERM', end)

start('api.js').once('exit', end)
for (let n = 0; n < WORKERS; n++) startWorker()
