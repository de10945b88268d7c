import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createDurably } from '@coji/durably'
import { createCluster } from '@coji/durably-cluster'
import { postgres } from '@coji/durably/postgres'
import { bake } from './bake.js'
import { startMember } from './members.js'
import { draw } from './view.js'

const NEW_RUN_MS = 300
const LOOK_MS = 500

/** A Postgres of our own, unless DATABASE_URL names one. It ends when its input does. */
async function startPostgres() {
  const given = process.env['DATABASE_URL']
  if (given !== undefined) return { url: given, stop: async () => {} }
  const program = join(import.meta.dirname, 'local-postgres.js')
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
  const [url] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit').then(() => [''])])
  if (String(url) === '') process.exit(1)
  return {
    url: String(url).trim(),
    async stop() {
      child.stdin.end()
      await once(child, 'exit')
    },
  }
}

const database = await startPostgres()
// It triggers runs and looks; it is no worker.
const durably = createDurably({ dialect: postgres({ connectionString: database.url }), logger: null })
const { bake: loaves } = durably.register({ bake })
const cluster = createCluster(durably, { leads: false })
await durably.migrate()
const members = await Promise.all(['alice', 'bob', 'carol'].map((name) => startMember(name, database.url)))
let chosen = members[0]
let loaf = 0

const baking = setInterval(() => {
  loaf += 1
  // One customer orders much more than the other.
  const tenant = loaf % 8 === 0 ? 'few' : 'many'
  void loaves.trigger({ loaf }, { tenant }).catch(() => {})
}, NEW_RUN_MS)

async function look() {
  const [leader, workers, counts] = await Promise.all([cluster.leader(), cluster.workers(), durably.counts()])
  const lines = draw({ leader, workers, counts: { ...counts }, members, chosen: chosen?.name ?? '' })
  if (process.stdout.isTTY) process.stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`)
  else process.stdout.write(`${lines.join('\n')}\n\n`)
}

if (process.stdout.isTTY) process.stdout.write('\u001b[2J')
const looking = setInterval(() => void look().catch(() => {}), LOOK_MS)

let isEnding = false
async function end() {
  if (isEnding) return
  isEnding = true
  clearInterval(baking)
  clearInterval(looking)
  await Promise.all(members.map((member) => member.end()))
  await durably.close()
  await database.stop()
  process.exit(0)
}

/** @param {string} key */
function press(key) {
  if ('123'.includes(key)) chosen = members[Number(key) - 1]
  else if (key === 'k') chosen?.kill()
  else if (key === 'p') chosen?.pause()
  else if (key === 'c') chosen?.cut()
  else if (key === 'q' || key === '\u0003') void end()
}

if (process.stdin.isTTY) process.stdin.setRawMode(true)
process.stdin.setEncoding('utf8').on('data', (keys) => {
  for (const key of String(keys)) press(key)
})
process.once('SIGINT', end)
process.once('SIGTERM', end)
