import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../test/postgres'
import { buildPrograms } from '../build.mjs'
import type { Env } from '../src/config'
import { readCompose } from '../src/local/compose'
import { type Place, placeAll } from '../src/local/places'
import { freePort } from '../src/local/free-port'
import { Supervisor } from '../src/local/supervisor'
import { buildPage } from '../web/test/built-page'

const COMPOSE = fileURLToPath(new URL('../docker-compose.yml', import.meta.url))

/** Everything that docker-compose.yml describes but Postgres, as processes. */
export interface Processes {
  readonly places: readonly Place[]
  readonly webUrl: string
  readonly apiUrls: readonly string[]
  readonly lines: readonly string[]
  readonly databaseUrl: string
  /** Where `dist` is. */
  readonly folder: string
  /** Ends the process in that place, without a word; it is started again. */
  kill(name: string, signal?: NodeJS.Signals): Promise<void>
  pidOf(name: string): number | undefined
  ready(name: string): Promise<void>
  end(): Promise<void>
}

export interface ProcessOptions {
  /** What the shell has set. Without a `WEB_PORT` any that is free. */
  readonly given?: Env
  /** One of its own server, for who stops that. */
  readonly database?: PostgresDatabase
  /** What the compose file says nothing of. */
  readonly own?: Readonly<Record<string, string>>
  /** Those that are started; without it all. */
  readonly services?: readonly string[]
  /** Whether a browser will look at it. */
  readonly hasPage?: boolean
}

export async function startProcesses({ given = {}, own = {}, ...options }: ProcessOptions = {}): Promise<Processes> {
  const folder = await mkdtemp(join(tmpdir(), 'agentic-web-test-'))
  const dist = join(folder, 'dist')
  const [database, port] = await Promise.all([
    options.database ?? createDatabase(),
    given['WEB_PORT'] ?? freePort(),
    buildPrograms(dist),
    options.hasPage === true ? buildPage(join(dist, 'web')) : null,
  ])
  const services = readCompose(await readFile(COMPOSE, 'utf8'), { WEB_PORT: String(port), ...given })
  const placed = await placeAll(
    services.filter(({ name }) => (options.services ?? ['api', 'worker', 'web']).includes(name)),
    database.url,
  )
  const places = placed.map((place): Place => ({ ...place, env: { ...place.env, ...own } }))
  const lines: string[] = []
  const supervisor = new Supervisor({ folder, onLine: (name, line) => void lines.push(`${name} ${line}`) })
  for (const place of places) supervisor.start(place)
  await Promise.all(places.map((place) => supervisor.ready(place)))
  const find = (name: string) => {
    const place = places.find((each) => each.name === name)
    if (place === undefined) throw new Error(`There is no ${name}.`)
    return place
  }
  return {
    places,
    webUrl: `http://127.0.0.1:${port}`,
    apiUrls: places.filter(({ service }) => service.name === 'api').map((place) => `http://127.0.0.1:${place.port}`),
    lines,
    databaseUrl: database.url,
    folder,
    async kill(name, signal = 'SIGKILL') {
      // One that was ended before is on its way back.
      await expect.poll(() => supervisor.pidOf(name)).toBeDefined()
      process.kill(supervisor.pidOf(name) ?? 0, signal)
    },
    pidOf: (name) => supervisor.pidOf(name),
    ready: (name) => supervisor.ready(find(name)),
    async end() {
      await supervisor.end()
      await database.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
