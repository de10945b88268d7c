/** What the address of a tab says. */
export interface Settings {
  readonly file: string
  /** Of the group of tabs; empty for none. */
  readonly name: string
  /** Of the application; empty for none. */
  readonly version: string
  /** A job that not every tab knows; empty for none. */
  readonly knows: string
  /** Nothing hears when the page is frozen, as where it stops without a word. */
  readonly deaf: boolean
  readonly plugin: boolean
  readonly leaseMs: number
  readonly heartbeatMs: number
  readonly concurrency: number
  readonly pollingMs: number
}

/** Leases so long that whatever a test waits for has not happened because one ran out. */
const DEFAULTS = { plugin: true, leaseMs: 3_600_000, heartbeatMs: 5000, concurrency: 4, pollingMs: 1000 }

export function settingsFrom(url: URL): Settings {
  const given = Object.fromEntries(url.searchParams)
  return {
    file: given['file'] ?? 'tabs.sqlite3',
    name: given['name'] ?? '',
    version: given['version'] ?? '',
    knows: given['knows'] ?? '',
    deaf: given['deaf'] === 'true',
    plugin: given['plugin'] !== 'false',
    leaseMs: Number(given['leaseMs'] ?? DEFAULTS.leaseMs),
    heartbeatMs: Number(given['heartbeatMs'] ?? DEFAULTS.heartbeatMs),
    concurrency: Number(given['concurrency'] ?? DEFAULTS.concurrency),
    pollingMs: Number(given['pollingMs'] ?? DEFAULTS.pollingMs),
  }
}
