import { InvalidOptionError, isStorableDelay, type Json, LONGEST_DELAY_MS, refuseUnknownOptions } from '../base'
import type { Engine } from '../engine'
import { capability } from '../port'
import { type CommandOptions, notedBy } from './acting'

/** What can be set for all processes while they run. What is not set is as the code says. */
export interface SettingValues {
  /** So many days after the end of a run its logs leave the database: `days` of `withLogRetention()`. */
  readonly logRetentionDaysDb?: number
  /** So many days entries of the audit are kept: `auditOlderThan` of `withRetention()`. */
  readonly auditRetentionDays?: number
  /** After so many seconds a run that its worker has not started is given to another one. */
  readonly reassignAfterSeconds?: number
  /** For so many seconds whoever leads has the lead without a sign of life. */
  readonly leaderLeaseSeconds?: number
}

/** Changes of settings; `null` takes one back. */
export type SettingChanges = { readonly [Name in keyof SettingValues]?: SettingValues[Name] | null }

/** The settings in the database, for all processes on it. */
export interface Settings {
  /** Looked up at most once in five seconds: a change by another process is heard of without a restart. */
  get(): Promise<SettingValues>
  /** Returns all that are set then. */
  set(changes: SettingChanges, options?: CommandOptions): Promise<SettingValues>
}

/** How long a look is good. */
const FRESH_MS = 5000

interface Rule {
  readonly name: string
  /** Milliseconds. */
  readonly unit: number
  readonly isAboveZero: boolean
}

const DAY_MS = 86_400_000

/** Under which name each is stored. */
const SETTINGS: Readonly<Record<keyof SettingValues, Rule>> = {
  logRetentionDaysDb: { name: 'log_retention_days_db', unit: DAY_MS, isAboveZero: false },
  auditRetentionDays: { name: 'audit_retention_days', unit: DAY_MS, isAboveZero: false },
  reassignAfterSeconds: { name: 'reassign_after_seconds', unit: 1000, isAboveZero: true },
  leaderLeaseSeconds: { name: 'leader_lease_seconds', unit: 1000, isAboveZero: true },
}
const KEYS = Object.keys(SETTINGS) as (keyof SettingValues)[]
const TAKEN = Object.fromEntries(KEYS.map((key) => [key, true] as const))

export function createSettings(engine: Engine): Settings {
  const { storage, environment } = engine
  let seen: { readonly values: Promise<SettingValues>; readonly at: number } | null = null
  const keep = (values: Promise<SettingValues>) => {
    const look = { values, at: environment.clock.monotonic() }
    seen = look
    // The next one asks again.
    values.catch(() => {
      if (seen === look) seen = null
    })
    return values
  }
  return {
    get() {
      const group = storage.settings
      if (group === undefined) return Promise.resolve({})
      if (seen !== null && environment.clock.monotonic() - seen.at < FRESH_MS) return seen.values
      return keep(group.get().then(toValues))
    },
    async set(changes, options = {}) {
      refuseUnknownOptions('settings.set()', options, { as: true })
      const group = capability(storage, 'settings', 'settings.set()')
      const stored = toStored(changes)
      const { audit } = notedBy(engine, 'settings', options.as)
      return keep(group.set(stored, audit).then(toValues))
    },
  }
}

function toStored(changes: SettingChanges): Readonly<Record<string, Json | null>> {
  refuseUnknownOptions('settings.set()', changes, TAKEN)
  const entries = KEYS.flatMap((key) => {
    const value = changes[key]
    if (value === undefined) return []
    if (value !== null && !isFit(SETTINGS[key], value)) throw unfit(key, value)
    return [[SETTINGS[key].name, value === null ? null : JSON.stringify(value)] as const]
  })
  return Object.fromEntries(entries)
}

function isFit({ isAboveZero, unit }: Rule, value: unknown): value is number {
  return typeof value === 'number' && isStorableDelay(value * unit) && !(isAboveZero && value === 0)
}

function unfit(key: keyof SettingValues, value: unknown): InvalidOptionError {
  const least = SETTINGS[key].isAboveZero ? 'above' : 'from'
  return new InvalidOptionError(`${key} must be a number ${least} 0 up to 100 years, or null, not ${String(value)}.`)
}

/** What somebody wrote into the table that is no value is as if it were not there; what is kept for longer than can be is kept. */
function toValues(stored: Readonly<Record<string, Json>>): SettingValues {
  const entries = KEYS.flatMap((key) => {
    const { name, unit, isAboveZero } = SETTINGS[key]
    const given = numberIn(stored[name])
    const value = typeof given === 'number' && !isAboveZero ? Math.min(given, LONGEST_DELAY_MS / unit) : given
    return isFit(SETTINGS[key], value) ? [[key, value] as const] : []
  })
  return Object.fromEntries(entries)
}

function numberIn(text: Json | undefined): unknown {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as unknown)
  } catch {
    return undefined
  }
}
