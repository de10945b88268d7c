import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createDatabase } from '../../../test/postgres'
import { buildPrograms } from '../build.mjs'
import type { Env } from '../src/config'
import { readCompose } from '../src/local/compose'
import { type Place, placeAll } from '../src/local/places'
import { freePort } from '../src/local/free-port'
import { Supervisor } from '../src/local/supervisor'

const COMPOSE = fileURLToPath(new URL('../docker-compose.yml', import.meta.url))

/** Everything that docker-compose.yml describes but Postgres, as processes. */
export interface Processes {
  readonly places: readonly Place[]
  readonly webUrl: string
  readonly apiUrls: readonly string[]
  readonly lines: readonly string[]
  readonly databaseUrl: string
  /** Kills the process in that place, without a word; it is started again. Gives its pid. */
  kill(name: string, signal?: NodeJS.Signals): number
  pidOf(name: string): number | undefined
  ready(name: string): Promise<void>
  end(): Promise<void>
}

/** `given` is what the shell has set; `own`, what the compose file says nothing of. */
export async function startProcesses(given: Env = {}, own: Readonly<Record<string, string>> = {}): Promise<Processes> {
  const folder = await mkdtemp(join(tmpdir(), 'agentic-web-test-'))
  const [database, port] = await Promise.all([createDatabase(), freePort(), buildPrograms(join(folder, 'dist'))])
  const services = readCompose(await readFile(COMPOSE, 'utf8'), { WEB_PORT: String(port), ...given })
  const placed = await placeAll(
    services.filter(({ name }) => name !== 'postgres'),
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
    kill(name, signal = 'SIGKILL') {
      const pid = supervisor.pidOf(name)
      if (pid === undefined) throw new Error(`${name} is no process.`)
      process.kill(pid, signal)
      return pid
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
