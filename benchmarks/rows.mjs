/** The two databases that most people begin with. */
const FILE = 'better-sqlite3 fast'
const SERVER = 'postgres'

/**
 * The table, in its order. `ours`, `limit` and each of `peers` is a measurement: the work, and the engine where it is
 * another; `beside` is measured and shown, and no goal is about it. Of a goal, `ofLimit` and `ofPeer` say how many times
 * as fast at least, `withinLimits` how many times the time of the limit at most, `atMost` a value.
 */
export const ROWS = [
  { what: 'durable steps, one run at a time', work: 'steps', on: 'memory', size: 6000 },
  {
    what: 'durable steps, one run at a time',
    work: 'steps',
    on: FILE,
    limit: 'commit',
    peers: ['durably-0-15'],
    goal: { ofLimit: 0.5, ofPeer: 3 },
  },
  {
    what: 'durable steps, one run at a time',
    work: 'steps',
    on: 'better-sqlite3 safe',
    limit: 'commit',
    goal: { ofLimit: 0.75 },
  },
  {
    what: 'durable steps, one run at a time',
    work: 'steps',
    on: 'libsql fast',
    limit: 'commit',
    peers: ['durably-0-15'],
    goal: { ofLimit: 0.5, ofPeer: 2.5 },
  },
  {
    what: 'durable steps, one run at a time',
    work: 'steps',
    on: SERVER,
    limit: 'commit',
    peers: ['durably-0-15', 'dbos'],
    goal: { ofLimit: 0.8 },
  },
  { what: 'one-step runs drained', work: 'runs', on: FILE, peers: ['durably-0-15'], goal: { ofPeer: 10 } },
  { what: 'one-step runs drained', work: 'runs', on: SERVER, peers: ['dbos', 'durably-0-15'], goal: { ofPeer: 7 } },
  { what: 'tasks drained', work: 'tasks', on: FILE, peers: ['plainjob'], goal: { ofPeer: 1 } },
  {
    what: 'tasks drained',
    work: 'tasks',
    on: SERVER,
    peers: ['pg-boss'],
    beside: ['graphile-worker'],
    goal: { ofPeer: 1 },
  },
  {
    what: 'tasks in memory',
    work: 'memory',
    on: 'memory',
    peers: ['p-queue'],
    beside: ['fastq'],
    goal: { ofPeer: 0.54 },
  },
  {
    what: 'trigger, one by one',
    work: 'trigger',
    on: FILE,
    limit: 'insert',
    peers: ['durably-0-15'],
    beside: ['plainjob'],
    goal: { ofLimit: 0.6 },
  },
  {
    what: 'trigger, batches of 500',
    work: 'batches',
    on: FILE,
    limit: 'insert 500',
    per: 500,
    peers: ['durably-0-15'],
    beside: ['plainjob'],
    goal: { ofLimit: 0.5 },
  },
  {
    what: 'trigger, one by one',
    work: 'trigger',
    on: SERVER,
    limit: 'insert',
    peers: ['pg-boss', 'graphile-worker'],
    goal: { ofLimit: 0.85 },
  },
  {
    what: 'trigger, batches of 500',
    work: 'batches',
    on: SERVER,
    limit: 'insert 500',
    per: 500,
    peers: ['pg-boss'],
    beside: ['graphile-worker'],
    goal: { ofPeer: 1 },
  },
  { what: 'resume with 5,000 steps', work: 'resume', on: FILE, peers: ['durably-0-15'], goal: { atMost: 6 } },
  { what: 'resume with 5,000 steps', work: 'resume', on: SERVER, peers: ['durably-0-15'], goal: { atMost: 10 } },
  { what: 'trigger → handler, idle', work: 'latency', on: FILE, limit: 'commit', goal: { withinLimits: 10 } },
  { what: 'trigger → handler, idle', work: 'latency', on: SERVER, peers: ['graphile-worker'], goal: { ofPeer: 1 } },
]

/** A measurement has one name wherever it is used: two rows that need it share it. */
export function nameOf({ work, engine, on }) {
  return `${work} · ${engine} · ${on}`
}

function of(row, engine, work = row.work) {
  const measurement = { work, engine, on: row.on, ...(row.size !== undefined && { size: row.size }) }
  return { ...measurement, name: nameOf(measurement) }
}

export const ours = (row) => of(row, 'durably')
export const limitOf = (row) => (row.limit === undefined ? undefined : of(row, 'limit', row.limit))
export const peersOf = (row) => (row.peers ?? []).map((engine) => of(row, engine))
export const besidesOf = (row) => (row.beside ?? []).map((engine) => of(row, engine))

export const PEERS = new Set(ROWS.flatMap((row) => [...peersOf(row), ...besidesOf(row)].map(({ engine }) => engine)))

/** What the rows need, each once, those of a row next to one another. */
export function measurementsOf(rows) {
  const all = rows.flatMap((row) => [ours(row), limitOf(row), ...peersOf(row), ...besidesOf(row)])
  return [...new Map(all.filter(Boolean).map((one) => [one.name, one])).values()]
}
