// Keeps one Postgres server for the tests, as a process of its own: started when somebody asks for it first, stopped and
// removed when whoever started this process is gone, in whatever way that happened.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { prepareCluster } from './postgres-cluster.mjs'

const settings = JSON.parse(process.argv[2] ?? '{}')
const STOP_SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' }

let cluster
let server
let port

async function start() {
  cluster ??= prepareCluster()
  for (let attempt = 1; server === undefined; attempt++) {
    // A port is kept over restarts. That it is free is known for a moment only.
    port ??= await freePort()
    server = await launch()
    if (server === undefined && attempt === 5) throw new Error(`Postgres does not start.\n${endOfLog()}`)
    if (server === undefined) port = undefined
  }
  return { url: `postgres://postgres@127.0.0.1:${port}/postgres` }
}

async function launch() {
  const options = Object.entries({ ...settings, port }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const log = openSync(cluster.log, 'a')
  const child = spawn(cluster.program('postgres'), ['-D', cluster.data, ...options], {
    ...cluster.user,
    detached: true,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  child.on('error', () => {})
  const ended = once(child, 'close').catch(() => {})
  return (await isUp(child)) ? { child, ended } : undefined
}

async function isUp(child) {
  for (let waited = 0; waited < 60_000 && child.exitCode === null && child.pid !== undefined; waited += 20) {
    if (await isReady()) return true
    await sleep(20)
  }
  child.kill('SIGKILL')
  return false
}

/** Asks for a connection as nobody in particular: any answer but "starting up" (57P03) means that it is up. */
function isReady() {
  const parameters = Buffer.from('user\0postgres\0database\0postgres\0\0')
  const message = Buffer.alloc(8 + parameters.length)
  message.writeInt32BE(message.length, 0)
  message.writeInt32BE(196608, 4)
  parameters.copy(message, 8)
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(message))
    socket.once('data', (data) => {
      resolve(String.fromCharCode(data[0]) === 'R')
      socket.destroy()
    })
    socket.once('error', () => resolve(false))
    socket.once('close', () => resolve(false))
  })
}

async function stop(mode) {
  if (server === undefined) return
  const { child, ended } = server
  server = undefined
  child.kill(STOP_SIGNALS[mode])
  const impatience = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(impatience)
}

function endOfLog() {
  try {
    return readFileSync(cluster.log, 'utf8').slice(-4000)
  } catch {
    return ''
  }
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port: free } = probe.address()
  probe.close()
  await once(probe, 'close')
  return free
}

const COMMANDS = {
  start,
  fast: () => stop('fast'),
  immediate: () => stop('immediate'),
  log: () => ({ log: endOfLog() }),
}

/** One after another: two that ask for the server at the same time get the same one. */
let turn = Promise.resolve()

/**
 * Each answer ends its connection: one that is kept is closed after some seconds, which a process does not hear of while its event
 * loop does not turn, and then asks in vain.
 */
const door = createHttpServer((request, response) => {
  response.shouldKeepAlive = false
  turn = turn
    .then(() => COMMANDS[request.url.slice(1)]())
    .catch((error) => ({ error: error.message }))
    .then((answer) => response.end(JSON.stringify(answer ?? {})))
})
door.listen(0, '127.0.0.1', () => process.stdout.write(`${door.address().port}\n`))

async function end() {
  door.close()
  door.closeAllConnections()
  await turn
  await stop('fast')
  if (cluster !== undefined) rmSync(cluster.folder, { recursive: true, force: true })
  process.exit(0)
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, end)
process.stdin.resume().on('end', end).on('error', end)
