import { RUN_STATUSES, type RunFilter, type RunStatus } from '@coji/durably'
import { InvalidArgumentError, Option } from 'commander'
import type { Place } from './database/open'

/** What every command takes. */
export interface CommonOptions extends Place {
  readonly json?: boolean
}

/** By what runs are chosen. */
export interface FilterOptions {
  readonly status?: readonly RunStatus[]
  readonly job?: readonly string[]
  readonly tenant?: string
  readonly label?: Readonly<Record<string, string>>
  readonly since?: Date
  readonly until?: Date
  readonly errorCode?: string
  readonly waitsFor?: NonNullable<RunFilter['waitsFor']>
}

export function databaseOptions(): readonly Option[] {
  return [
    new Option('--db <address>', 'the database: file:app.db, postgres://user@host/name, libsql://name.turso.io').env(
      'DURABLY_DB',
    ),
    new Option('--table-prefix <prefix>', "what the names of durably's tables begin with (default: durably_)"),
    new Option('--schema <name>', 'the schema of the tables, on Postgres'),
  ]
}

export const JSON_OPTION = new Option('--json', 'print JSON')

export function filterOptions(statuses: readonly RunStatus[] = RUN_STATUSES): readonly Option[] {
  return [
    new Option(
      '-s, --status <status>',
      `only with this status; several with commas (${statuses.join(', ')})`,
    ).argParser(statusesAmong(statuses)),
    new Option('-j, --job <name>', 'only of this job; several with commas').argParser(addNames),
    new Option('--tenant <name>', 'only of this tenant'),
    new Option('--label <name=value>', 'only with this label; may be given several times').argParser(addLabel),
    new Option('--since <time>', 'only triggered since then: 30m, 2h, 7d, or a date').argParser(toDate),
    new Option('--until <time>', 'only triggered before: 30m, 2h, 7d, or a date').argParser(toDate),
    new Option('--error-code <code>', 'only those whose last error has this code'),
    new Option('--waits-for <what>', 'only those that wait for this').choices([
      'retry',
      'unpark',
      'signal',
      'time',
      'child',
    ]),
  ]
}

export function toFilter({ status, job, tenant, label, since, until, errorCode, waitsFor }: FilterOptions): RunFilter {
  return {
    ...(status !== undefined && { status }),
    ...(job !== undefined && { jobName: job }),
    ...(tenant !== undefined && { tenant }),
    ...(label !== undefined && { labels: label }),
    ...(since !== undefined && { createdFrom: since }),
    ...(until !== undefined && { createdBefore: until }),
    ...(errorCode !== undefined && { errorCode }),
    ...(waitsFor !== undefined && { waitsFor }),
  }
}

const statusesAmong =
  (statuses: readonly RunStatus[]) =>
  (given: string, before: readonly RunStatus[] = []): readonly RunStatus[] => {
    const named = given.split(',').map((name) => name.trim())
    const unknown = named.find((name) => !statuses.some((status) => status === name))
    if (unknown !== undefined) throw new InvalidArgumentError(`"${unknown}" is none of ${statuses.join(', ')}.`)
    return [...before, ...(named as RunStatus[])]
  }

function addNames(given: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...given.split(',').map((name) => name.trim())]
}

function addLabel(given: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = given.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('A label is given as name=value.')
  return { ...before, [given.slice(0, at)]: given.slice(at + 1) }
}

const LENGTHS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** A time before now, or an instant. */
function toDate(given: string): Date {
  const [, number, unit = ''] = /^(\d+)\s*([smhdw])$/.exec(given) ?? []
  const isAge = number !== undefined
  const date = isAge ? new Date(Date.now() - Number(number) * (LENGTHS[unit] ?? 0)) : new Date(given)
  if (date.getUTCFullYear() >= 1 && (isAge || /^\d{4}-/.test(given))) return date
  throw new InvalidArgumentError('A time is 30s, 15m, 2h, 7d, 4w, or a date such as 2026-01-31 or 2026-01-31T12:00Z.')
}

export function integerFrom(least: number, most = Number.MAX_SAFE_INTEGER): (given: string) => number {
  return (given) => {
    const number = Number(given)
    if (/^\d+$/.test(given) && number >= least && number <= most) return number
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`
    throw new InvalidArgumentError(`It is a whole number ${range}.`)
  }
}
