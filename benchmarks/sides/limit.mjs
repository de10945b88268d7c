import Database from 'better-sqlite3'
import pg from 'pg'
import {
  durabilityOfNativeLibsql,
  durabilityOfPostgres,
  durabilityOfSqlite,
  nativeLibsql,
  SYNCHRONOUS_OF,
} from '../databases.mjs'

// What the database alone needs for the same rows: prepared statements, no layer in between. A text key each, and the
// one index that a queue cannot do without: what is due next.
const SCHEMA = [
  `create table runs (id text primary key, job text not null, status text not null, payload text not null,
    step integer not null, epoch integer not null, commit_no integer not null, due_at text not null, updated_at text not null)`,
  'create index runs_due on runs (status, due_at)',
  `create table steps (id text primary key, run_id text not null, name text not null, at integer not null,
    status text not null, output text, started_at text not null, completed_at text)`,
  'create unique index steps_name on steps (run_id, name)',
]
const INSERT_STEP = 'insert into steps values (?, ?, ?, ?, ?, ?, ?, ?)'
const UPDATE_RUN = 'update runs set step = ?, updated_at = ? where id = ?'
const INSERT_RUN = 'insert into runs values (?, ?, ?, ?, ?, ?, ?, ?, ?)'

/** A step of one run, written behind its fence, as one statement. */
const FENCED_STEP = `with held as (
  update runs set step = $4, commit_no = $4 + 1, updated_at = $7 where id = $2 and epoch = 1 and commit_no = $4 returning id)
insert into steps select $1, id, $3, $4, $5, $6, $7, $8 from held`

const RUN = key('run', 0)

function key(prefix, n) {
  return `${prefix}_${String(n).padStart(22, '0')}`
}

function stepRow(n) {
  const now = new Date().toISOString()
  return [
    key('step', n),
    RUN,
    `step ${n}`,
    n,
    'completed',
    JSON.stringify({ ok: true, n, text: 'abcdefghij' }),
    now,
    now,
  ]
}

function runRow(n) {
  const now = new Date().toISOString()
  return [key('run', n), 'bench', 'pending', JSON.stringify({ n, user: 'user 1' }), 0, 1, 0, now, now]
}

/** Each answers what does the work `n`, for the clock to call. */
const ON_BETTER_SQLITE3 = {
  commit(db) {
    const [insert, update] = [db.prepare(INSERT_STEP), db.prepare(UPDATE_RUN)]
    return db.transaction((n) => {
      const row = stepRow(n)
      insert.run(row)
      update.run(n, row[6], RUN)
    })
  },
  insert(db) {
    const insert = db.prepare(INSERT_RUN)
    return (n) => insert.run(runRow(n + 1))
  },
  'insert 500'(db) {
    const insert = db.prepare(INSERT_RUN)
    return db.transaction((n) => {
      for (let k = 0; k < 500; k++) insert.run(runRow(n * 500 + k + 1))
    })
  },
}

const ON_POSTGRES = {
  commit: (client) => (n) => client.query({ name: 'step', text: FENCED_STEP, values: stepRow(n) }),
  insert: (client) => (n) => client.query({ name: 'run', text: INSERT_RUN_PG, values: runRow(n + 1) }),
  'insert 500': (client) => (n) => {
    const rows = Array.from({ length: 500 }, (_, k) => runRow(n * 500 + k + 1))
    const values = rows[0].map((_, column) => rows.map((row) => row[column]))
    return client.query({ name: 'runs', text: INSERT_RUNS_PG, values })
  },
}
const INSERT_RUN_PG = 'insert into runs values ($1, $2, $3, $4, $5, $6, $7, $8, $9)'
const INSERT_RUNS_PG = `insert into runs select * from unnest(
  $1::text[], $2::text[], $3::text[], $4::text[], $5::int[], $6::int[], $7::int[], $8::text[], $9::text[])`

const OPEN = {
  async 'better-sqlite3'({ file, durability }) {
    const db = new Database(file)
    db.pragma('journal_mode = wal')
    db.pragma(`synchronous = ${SYNCHRONOUS_OF[durability]}`)
    for (const statement of SCHEMA) db.exec(statement)
    db.prepare(INSERT_RUN).run(runRow(0))
    return { connection: db, works: ON_BETTER_SQLITE3, durability: () => durabilityOfSqlite(db) }
  },
  async libsql({ file, durability }) {
    const db = new (nativeLibsql())(file)
    for (const setting of ['journal_mode = wal', `synchronous = ${SYNCHRONOUS_OF[durability]}`])
      db.exec(`pragma ${setting}`)
    for (const statement of SCHEMA) db.exec(statement)
    db.prepare(INSERT_RUN).run(runRow(0))
    return { connection: db, works: ON_BETTER_SQLITE3, durability: () => durabilityOfNativeLibsql(db) }
  },
  async postgres({ url }) {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    for (const statement of SCHEMA) await client.query(statement)
    await client.query(INSERT_RUN_PG, runRow(0))
    return { connection: client, works: ON_POSTGRES, durability: () => durabilityOfPostgres(url) }
  },
}

/** The raw work on a database, to be repeated: `{ act(n), durability(), isSync }`. */
export async function openLimit(work, database) {
  const { connection, works, durability } = await OPEN[database.driver](database)
  return { act: works[work](connection), durability, isSync: database.driver !== 'postgres' }
}
