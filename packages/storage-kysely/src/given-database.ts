import { InvalidOptionError } from '@coji/durably-core'
import { type OptionNames, refuseUnknownOptions } from '@coji/durably-core/extend'
import type { Dialect, Kysely } from 'kysely'
import type { KyselyStorageOptions } from './kysely-storage'

const OPTIONS: OptionNames<KyselyStorageOptions> = { tablePrefix: true, durability: true, dialect: true, db: true }

/** Refused before a driver is asked: what it would say of a mistake here helps nobody. */
export function requireOptions(options: KyselyStorageOptions<never>): void {
  refuseUnknownOptions('createKyselyStorage()', options, OPTIONS)
  const { tablePrefix, dialect, db } = options as { tablePrefix?: unknown; dialect?: unknown; db?: unknown }
  if (tablePrefix !== undefined && typeof tablePrefix !== 'string') {
    throw new InvalidOptionError(`tablePrefix must be a text, not ${String(tablePrefix)}.`)
  }
  if ((dialect === undefined) === (db === undefined)) {
    const found = db === undefined ? 'neither' : 'both'
    throw new InvalidOptionError(`createKyselyStorage() takes a dialect or a db, and was given ${found}.`)
  }
  if (db === undefined) requireDialect(dialect)
  else requireKysely(db)
}

const DIALECT_METHODS: readonly (keyof Dialect)[] = [
  'createAdapter',
  'createDriver',
  'createIntrospector',
  'createQueryCompiler',
]

function requireDialect(given: unknown): asserts given is Dialect {
  if (typeof given === 'string') {
    throw new InvalidOptionError(`dialect must be a Kysely dialect, not a text: use ${helperFor(given)}.`)
  }
  refuseUncalled('dialect', given)
  if (isKysely(given)) throw new InvalidOptionError('dialect is an instance of Kysely: give it as db.')
  const missing = DIALECT_METHODS.filter((name) => typeof Object(given)[name] !== 'function')
  if (missing.length === 0) return
  throw new InvalidOptionError(
    `dialect is no Kysely dialect: it has no ${missing.map((name) => `${name}()`).join(', ')}. What a driver opened goes ` +
      'through a helper: betterSqlite3({ database }), libsql({ client }), postgres({ pool }) or sqlocal({ client }).',
  )
}

function requireKysely(given: unknown): asserts given is Kysely<never> {
  refuseUncalled('db', given)
  if (isKysely(given)) return
  const isDialect = typeof Object(given).createDriver === 'function'
  throw new InvalidOptionError(
    isDialect
      ? 'db is a dialect: give it as dialect.'
      : 'db must be an instance of Kysely: new Kysely({ dialect }). For a dialect, or a place, give dialect.',
  )
}

/** A helper without its parentheses, or an async one without `await`. */
function refuseUncalled(option: string, given: unknown): void {
  if (typeof given === 'function') throw new InvalidOptionError(`${option} is the function ${given.name}(): call it.`)
  if (typeof Object(given).then === 'function') throw new InvalidOptionError(`${option} is a promise: await it.`)
}

function isKysely(given: unknown): boolean {
  const { getExecutor, withoutPlugins } = Object(given) as Partial<Kysely<never>>
  return typeof getExecutor === 'function' && typeof withoutPlugins === 'function'
}

/** An address with a host is not shown: there may be a password in it. */
function helperFor(place: string): string {
  if (/^postgres(ql)?:/.test(place)) return "postgres({ connectionString }) of '@coji/durably/postgres'"
  if (place.includes('://')) return "libsql(url) of '@coji/durably/libsql'"
  const path = place.replace(/^file:/, '')
  return `libsql('file:${path}') of '@coji/durably/libsql', or betterSqlite3('${path}') of '@coji/durably/better-sqlite3'`
}
