import { createDatabase } from '../../../../test/postgres'
import { createKyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import type { Fences } from '../../src/statement/fences'
import { recordWrites, takeWrites, wrongIn } from './accepted-writes'
import { type Answers, wrongAnswers } from './answers'
import { OF_HOLDER, operationOf, turnsOf, type World } from './operations'
import { allOrders, giveTurns, isMixed, type Order, Watch } from './orders'
import { Session } from './session'
import { createWorlds, type State } from './worlds'

export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

/** Operations that meet on one run, and the order in which they send what they have to send. */
export interface Case {
  readonly operations: readonly string[]
  readonly order: Order
}

/** Each list of operations in every order. */
export function casesOf(lists: readonly (readonly string[])[]): readonly Case[] {
  return lists.flatMap((operations) =>
    allOrders(operations.map(turnsOf))
      .filter(isMixed)
      .map((order) => ({ operations, order })),
  )
}

interface StageParams {
  /** What the database has as its default. */
  readonly isolation: Isolation
  readonly fences?: Fences
  readonly mutate?: (sql: string) => string
}

interface Told {
  readonly wrong: readonly string[]
  /** What the database answered to the sessions, deadlocks among it. */
  readonly errors: readonly string[]
}

/** A database with sessions on it. */
export interface Stage {
  play(cases: readonly Case[], state: State): Promise<Told>
  close(): Promise<void>
}

/** Cases that are played at the same time. */
const LANES = 3
const SESSIONS = [0, 1, 2]

export async function openStage({ isolation, ...session }: StageParams): Promise<Stage> {
  const { url, drop } = await createDatabase()
  const watch = await Watch.open(url)
  const name = new URL(url).pathname.slice(1)
  await watch.query(`alter database ${name} set default_transaction_isolation = '${isolation}'`)
  const storage = createKyselyStorage({ dialect: postgres({ connectionString: url, listen: false }) })
  await storage.migrate()
  await recordWrites(watch)
  const openLane = async () => ({
    sessions: SESSIONS.map(() => new Session({ ...session, url })),
    watch: await Watch.open(url),
  })
  const lanes = await Promise.all(Array.from({ length: LANES }, openLane))
  const sessions = lanes.flatMap((lane) => lane.sessions)
  return {
    async play(cases, state) {
      const names = cases.map(({ operations }, index) => `${index} ${state} ${operations.join(', ')}`)
      const worlds = new Map((await createWorlds(storage, state, names)).map((world) => [world.name, world]))
      const answers: Answers = new Map()
      const failures: string[] = []
      const left = cases.entries()
      await Promise.all(
        lanes.map(async (lane) => {
          for (const [index, one] of left)
            await playOne({ ...lane, one, answers, failures, world: found(worlds.get(names[index] ?? '')) })
        }),
      )
      const writes = await takeWrites(watch)
      const errors = new Set(sessions.flatMap((own) => own.errors.splice(0)))
      return { wrong: [...failures, ...wrongIn(writes), ...wrongAnswers(answers, writes)], errors: [...errors] }
    },
    async close() {
      for (const one of [...sessions, storage]) await one.close()
      for (const one of [...lanes.map((lane) => lane.watch), watch]) await one.end()
      await drop()
    },
  }
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('There are too few.')
  return value
}

interface PlayOneParams {
  readonly one: Case
  readonly world: World
  readonly sessions: readonly Session[]
  readonly watch: Watch
  readonly answers: Answers
  readonly failures: string[]
}

async function playOne({ one, world, sessions, watch, answers, failures }: PlayOneParams): Promise<void> {
  const { operations, order } = one
  const playing = sessions.slice(0, operations.length)
  const works = operations.map((name, index) => {
    const before = operations.slice(0, index).filter((other) => other in OF_HOLDER || other === 'together')
    // The same operation of the same holder is the same commit, sent twice.
    const isRepeated = before.includes(name)
    const tag = `${world.name}:${isRepeated ? operations.indexOf(name) : index}`
    const commitNo = world.commitNo + (isRepeated ? before.indexOf(name) : before.length)
    const session = playing[index]
    const note = (count: number) => {
      if (count > 0) answers.set(tag, { world, name, count })
    }
    return found(session)
      .play((storage) => operationOf(name)(storage, { world, tag, commitNo }))
      .then(note, (error: unknown) => void failures.push(`${tag}: ${error}`))
  })
  await giveTurns({ sessions: playing, order, watch })
  await Promise.all(works)
}
