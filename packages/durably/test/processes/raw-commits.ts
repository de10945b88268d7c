import { createClient } from '@libsql/client'
import SqliteDatabase from 'better-sqlite3'
import type { DriverName } from './programs/drivers'

/** The driver itself on a connection of its own: what one transaction of an insert and an update costs there. */
export interface RawCommits {
  commit(): Promise<void>
  close(): void
}

const CREATE = 'create table raw (id integer primary key, value text)'
const INSERT = "insert into raw (value) values ('a row of some length, as a step would have')"
const UPDATE = "update raw set value = 'changed' where id = (select max(id) from raw)"

const OPEN: Readonly<Record<DriverName, (file: string) => Promise<RawCommits>>> = {
  async libsql(file) {
    const client = createClient({ url: `file:${file}`, concurrency: 1 })
    await client.execute('pragma synchronous = full')
    await client.execute(CREATE)
    return {
      commit: async () => void (await client.batch([INSERT, UPDATE], 'write')),
      close: () => client.close(),
    }
  },
  async 'better-sqlite3'(file) {
    const database = new SqliteDatabase(file)
    database.pragma('synchronous = full')
    database.exec(CREATE)
    const [insert, update] = [database.prepare(INSERT), database.prepare(UPDATE)]
    const both = database.transaction(() => [insert.run(), update.run()]).immediate
    return { commit: async () => void both(), close: () => database.close() }
  },
}

/** On a file that is in WAL mode already. */
export function openRaw(driver: DriverName, file: string): Promise<RawCommits> {
  return OPEN[driver](file)
}
