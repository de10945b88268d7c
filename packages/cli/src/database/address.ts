import { Refusal } from '../refusal'

/** Where the runs are, as somebody named it. */
export type Address = {
  /** Without what is secret in it. */
  readonly name: string
} & ({ readonly kind: 'file'; readonly path: string } | { readonly kind: 'libsql' | 'postgres'; readonly url: string })

const SERVERS: Readonly<Record<string, 'libsql' | 'postgres'>> = {
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
  'libsql:': 'libsql',
  'https:': 'libsql',
  'http:': 'libsql',
  'wss:': 'libsql',
  'ws:': 'libsql',
}

export const EXAMPLES = 'file:app.db, postgres://user@host/database or libsql://name.turso.io'

/** A path is a file too; one letter before a colon is a drive. */
export function parseAddress(given: string): Address {
  const scheme = /^[a-z][a-z0-9+.-]+:/i.exec(given)?.[0].toLowerCase()
  if (given.trim() === '') throw new Refusal(`--db is empty. Name a database, such as ${EXAMPLES}.`)
  if (given.includes(':memory:')) {
    throw new Refusal('A database in memory belongs to the process that made it; nobody else can look at it.')
  }
  if (scheme === undefined) return file(given)
  if (scheme === 'file:' || scheme === 'sqlite:') return file(pathIn(given.slice(scheme.length)))
  const kind = SERVERS[scheme]
  if (kind === undefined) {
    throw new Refusal(`${scheme}// is no database of durably, which keeps runs in SQLite or Postgres: ${EXAMPLES}.`)
  }
  return { kind, url: given, name: withoutSecrets(given) }
}

function file(path: string): Address {
  return { kind: 'file', path, name: path }
}

/** `app.db`, `/app.db`, `///app.db` and `//localhost/app.db` of a file URL. */
function pathIn(rest: string): string {
  const path = rest.replace(/[?#].*$/, '').replace(/^\/\/(localhost)?(?=\/)/, '')
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

function withoutSecrets(given: string): string {
  if (!URL.canParse(given))
    throw new Refusal('The address of the database is no URL. Is a character in its password not encoded?')
  const { protocol, username, host, pathname } = new URL(given)
  return `${protocol}//${username === '' ? '' : `${username}@`}${host}${pathname}`
}
