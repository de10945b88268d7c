// One measurement in one process: `node measure.mjs <JSON>` prints one line of JSON.
import { existsSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { repeat, repeatSync, secondsFor } from './clock.mjs'
import { beside, freshDatabase, POSTGRES_NAME } from './databases.mjs'
import { openLimit } from './sides/limit.mjs'
import { WORKS } from './works.mjs'

/** Asked by `rounds.mjs`: `{ work, engine, on, isQuick, folder, postgres }`; by itself with the `database` to go on with. */
const asked = JSON.parse(process.argv[2])

async function measureLimit({ work, isQuick }, database) {
  const { act, durability, isSync } = await openLimit(work, database)
  const rate = await (isSync ? repeatSync : repeat)(secondsFor(isQuick), act)
  return { ...rate, durability: await durability() }
}

async function measureEngine({ work, engine, isQuick, phase }, database) {
  const { run, before, needs, size, quick } = { ...WORKS[work], ...sizeOf(asked) }
  const { openRuns, openTasks, concurrency } = await import(moduleOf(engine))
  const open = (setup) =>
    (needs === 'runs' ? (openRuns ?? openTasks) : openTasks)({
      database,
      work,
      concurrency: concurrency[needs],
      ...setup,
    })
  const terms = { seconds: secondsFor(isQuick), size: isQuick ? quick : size }
  if (phase === 'before') return before(open, terms)
  if (before) await prepared({ ...asked, database, phase: 'before' })
  return run(open, terms)
}

/** What a row chose for itself; a quick measurement takes a quarter of that. */
function sizeOf({ size }) {
  return size === undefined ? {} : { size, quick: size / 4 }
}

function moduleOf(engine) {
  const own = new URL(`./sides/${engine}.mjs`, import.meta.url)
  return existsSync(own) ? own : new URL(`./peers/${engine}.mjs`, import.meta.url)
}

/** What comes before ends with the death of its process, and is not measured: it need not wait for the disk. */
async function prepared(question) {
  const { database } = question
  const inPostgres = async (setting) => database.url && beside(database, `alter database ${POSTGRES_NAME} ${setting}`)
  await inPostgres('set synchronous_commit = off')
  const program = [fileURLToPath(import.meta.url), JSON.stringify(question)]
  const { status, stderr } = spawnSync(process.execPath, program, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`what comes before ended with ${status}: ${stderr}`)
  await inPostgres('reset synchronous_commit')
}

// Who asked is gone: so is the question.
if (asked.phase === undefined) process.stdin.resume().on('end', () => process.exit(1))

const database = asked.database ?? (await freshDatabase(asked.on, asked))
const measured = await (asked.engine === 'limit' ? measureLimit : measureEngine)(asked, database)
process.stdout.write(`${JSON.stringify(measured)}\n`, () => process.exit(0))
