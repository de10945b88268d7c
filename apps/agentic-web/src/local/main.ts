import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readCompose } from './compose'
import { freePortFrom } from './free-port'
import { placeAll } from './places'
import { startPostgres } from './postgres'
import { Supervisor } from './supervisor'

const FOLDER = dirname(dirname(fileURLToPath(import.meta.url)))
const FIRST_PORT = 8080
const { values } = parseArgs({ options: { verbose: { type: 'boolean' }, port: { type: 'string' } } })

/** What docker-compose.yml describes, without Docker. */
async function main(): Promise<void> {
  const began = performance.now()
  const told = new Promise<void>((resolve) => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
  const given = process.env['DATABASE_URL']
  const postgres = given ? null : await startPostgres()
  const supervisor = new Supervisor({ folder: FOLDER, onLine })
  try {
    const port = values.port ?? process.env['WEB_PORT'] ?? String(await freePortFrom(FIRST_PORT))
    const env = { ...process.env, WEB_PORT: port }
    const services = readCompose(await readFile(join(FOLDER, 'docker-compose.yml'), 'utf8'), env)
    const places = await placeAll(
      services.filter(({ name }) => name !== 'postgres'),
      postgres?.url ?? given ?? '',
    )
    for (const place of places) supervisor.start(place)
    await Promise.race([told, Promise.all(places.map((place) => supervisor.ready(place)))])
    const web = places.find(({ service }) => service.name === 'web')
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    const parts = services.map(({ name, replicas }) => `${replicas} ${name}`).join(', ')
    process.stdout.write(`\n  http://localhost:${web?.port}/ is ready after ${seconds} s: ${parts}\n`)
    for (const { name } of places) process.stdout.write(`  ${name} is process ${supervisor.pidOf(name)}\n`)
    process.stdout.write('  Kill any of them; it is started again. Ctrl-C ends all of it.\n\n')
    await told
  } finally {
    await supervisor.end()
    await postgres?.stop()
  }
}

/** What is wrong is shown, everything else with --verbose. */
function onLine(name: string, line: string): void {
  if (values.verbose !== true && /"level":"info"/.test(line)) return
  process.stdout.write(`${name}  ${line}\n`)
}

await main()
