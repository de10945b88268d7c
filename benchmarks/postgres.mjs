import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const KEEPER = fileURLToPath(new URL('../test/postgres-keeper.mjs', import.meta.url))

/** As a server comes, fsync included: only how it is reached is said. */
const SETTINGS = { listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: 200 }

/** The Postgres that comes with the workspace, or that of DATABASE_URL; `{ url, end }`. */
export async function startPostgres() {
  const given = process.env.DATABASE_URL
  if (given) return { url: given, end: async () => {} }
  const keeper = spawn(process.execPath, [KEEPER, JSON.stringify(SETTINGS)], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [line] = await once(keeper.stdout, 'data')
  const answer = await fetch(`http://127.0.0.1:${String(line).trim()}/start`)
  const { url, error } = await answer.json()
  if (error) throw new Error(`Postgres does not start: ${error}`)
  return { url, end: () => ended(keeper) }
}

async function ended(keeper) {
  keeper.stdin.end()
  await once(keeper, 'close')
}
