import { DurablyError } from '@coji/durably'
import type { SchemaReport } from '@coji/durably/storage'
import { Misuse, Refusal } from '../refusal'
import type { Address } from './address'
import type { Place } from './open'

interface Looked {
  readonly address: Address
  readonly place: Place
}

/** Throws where the tables are not those that this command knows. */
export function schemaTrouble({ version, minReader, newest }: SchemaReport, { address, place }: Looked): void {
  if (version === 0) throw new Refusal(noTables(address, place))
  if (minReader > newest.version) {
    throw new Refusal(
      `The tables in ${address.name} are newer than this command: they ask for version ${minReader} or later, and it knows ` +
        `${newest.version}. Use the one of your application: npx @coji/durably-cli@latest.`,
    )
  }
  if (version < newest.version) {
    throw new Refusal(
      `The tables in ${address.name} have version ${version}, and this command needs ${newest.version}. Use the ` +
        '@coji/durably-cli of the version of your application, or bring the tables up to date: durably migrate --dry-run.',
    )
  }
}

function noTables({ name }: Address, { tablePrefix, schema }: Place): string {
  const table = `${schema === undefined ? '' : `${schema}.`}${tablePrefix ?? 'durably_'}runs`
  return `There are no tables of durably in ${name}: no ${table}. Is it the right database? Otherwise see --table-prefix and --schema, or make them: durably migrate.`
}

/** What a person can do something with. What nobody knows stays what it is. */
export function explainTrouble(error: unknown, address: Address): unknown {
  if (error instanceof Refusal || error instanceof Misuse || !(error instanceof Error)) return error
  const driver = missingDriver(error)
  if (driver !== null)
    return new Refusal(`The driver ${driver} is missing. Install it beside durably: npm install ${driver}.`)
  const sentence = error instanceof DurablyError ? sentenceFor(error, address) : null
  return sentence === null ? error : new Refusal(sentence, { cause: error })
}

function missingDriver(error: Error): string | null {
  for (const { code, message } of linksOf(error)) {
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') continue
    // The part of libSQL in native code is a package of its own for each platform.
    const [, name] = /Cannot find (?:package|module) '((?:@[^/']+\/)?[^/']+)/.exec(message) ?? []
    if (name !== undefined) return name
  }
  return null
}

function sentenceFor(error: DurablyError, { name, kind }: Address): string | null {
  const [first = error] = linksOf(error).slice(1)
  const detail = first.message
  const because = `${name}: ${oneLine(detail)}`
  switch (error.code) {
    case 'STORAGE_CORRUPT':
      return /not a database/i.test(error.message)
        ? `${name} is no SQLite database. Check --db; an encrypted one cannot be read here.`
        : `The database is damaged. ${because}`
    case 'STORAGE_CANNOT_OPEN':
      return `The database cannot be opened. ${because}. Check the address, the user and the password.`
    case 'STORAGE_READONLY':
      return `The database does not let this user do that. ${because}.`
    case 'STORAGE_BUSY':
    case 'CONNECTION_HELD':
      return `Somebody else keeps the database busy. ${because}. Try again.`
    case 'STORAGE_FULL':
      return `There is no room left. ${because}.`
    case 'STORAGE_UNAVAILABLE':
      return kind === 'file'
        ? `The database does not answer. ${because}.`
        : `The database does not answer. ${because}. Is it running, and is the address right?`
    default:
      return oneLine(error.message)
  }
}

interface Link {
  readonly code: unknown
  readonly message: string
}

function linksOf(error: Error): readonly Link[] {
  const links: Link[] = []
  for (let at: unknown = error; at instanceof Error && links.length < 6; at = at.cause) {
    const inner: unknown = at instanceof AggregateError ? at.errors[0] : undefined
    const message = at.message === '' && inner instanceof Error ? inner.message : at.message
    links.push({ code: Object(at).code, message })
  }
  return links
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().replace(/\.$/, '')
}
