import type { Dialect } from 'kysely'
import { inLane } from '../../../../../test/scale'

/** A process loads the driver that it uses: each takes as long as all the rest. */
const OPEN = {
  libsql: async (file: string) => (await import('../../../src/libsql')).libsql(`file:${file}`),
  'better-sqlite3': async (file: string) => (await import('../../../src/better-sqlite3')).betterSqlite3(file),
} as const

export type DriverName = keyof typeof OPEN

/** What is proven with processes is proven for each of these: in the quick lane for one, the other is behind what is shown of the API there. */
export const DRIVERS = inLane<DriverName>(['libsql', 'better-sqlite3'], (name) => name === 'better-sqlite3')

export function connect(driver: DriverName, file: string): Promise<Dialect> {
  return OPEN[driver](file)
}

/** A file, or a server of Postgres. */
export type Place = { readonly driver: DriverName; readonly file: string } | { readonly url: string }

export async function connectTo(place: Place): Promise<Dialect> {
  if (!('url' in place)) return connect(place.driver, place.file)
  return (await import('../../postgres/programs/connect')).connect(place.url)
}
