import SqliteDatabase from 'better-sqlite3'

/** One accepted write to the row of a run, as a trigger of the database saw it. */
export interface AcceptedWrite {
  readonly position: number
  readonly source: string
  readonly runId: string
  readonly key: string | null
  readonly limit: number
  readonly status: string
  readonly epoch: number
  readonly token: string | null
  readonly slot: number | null
  readonly owner: string | null
}

const COLUMNS = 'concurrency_key, concurrency_limit, status, lease_epoch, claim_token, concurrency_slot, owner_id'

/** Makes the database itself record, in the same transaction, every write it accepts for a run. */
export function installAudit(file: string): void {
  const database = new SqliteDatabase(file)
  database.exec(`create table audit (position integer primary key, source text, run_id text, ${COLUMNS})`)
  const ofRun = `insert into audit (source, run_id, ${COLUMNS})
    select '%', r.id, ${COLUMNS} from durably_runs as r where r.id = new.`
  for (const [table, id] of TABLES) {
    for (const event of ['insert', 'update']) {
      database.exec(`create trigger audit_${table}_${event} after ${event} on durably_${table} begin
        ${ofRun.replace('%', table)}${id}; end`)
    }
  }
  database.close()
}

const TABLES = [
  ['runs', 'id'],
  ['steps', 'run_id'],
  ['logs', 'run_id'],
  ['run_events', 'run_id'],
] as const

export function readAudit(file: string): readonly AcceptedWrite[] {
  const database = new SqliteDatabase(file, { readonly: true })
  const rows = database
    .prepare<[], AcceptedWrite>(
      `select position, source, run_id as runId, concurrency_key as "key", concurrency_limit as "limit", status,
        lease_epoch as epoch, claim_token as token, concurrency_slot as slot, owner_id as owner
      from audit order by position`,
    )
    .all()
  database.close()
  return rows
}

/** Replays the writes in their order; every breach of what a lease and a key promise, in words. */
export function findBreaches(writes: readonly AcceptedWrite[]): readonly string[] {
  const breaches: string[] = []
  const last = new Map<string, AcceptedWrite>()
  const holders = new Map<string, Map<string, AcceptedWrite>>()
  for (const write of writes) {
    const before = last.get(write.runId)
    if (before !== undefined) breaches.push(...leaseBreaches(before, write))
    last.set(write.runId, write)
    if (write.key === null) continue
    const ofKey = holders.get(write.key) ?? new Map<string, AcceptedWrite>()
    holders.set(write.key, ofKey)
    if (write.status === 'running') ofKey.set(write.runId, write)
    else ofKey.delete(write.runId)
    breaches.push(...keyBreaches(write, [...ofKey.values()]))
  }
  return breaches
}

function leaseBreaches(before: AcceptedWrite, write: AcceptedWrite): string[] {
  const where = `at ${write.position} (${write.source} of ${write.runId})`
  const isClaim = write.source === 'runs' && before.status === 'pending' && write.status === 'running'
  if (write.epoch < before.epoch) return [`a write of epoch ${write.epoch} after ${before.epoch} ${where}`]
  if (isClaim && write.epoch === before.epoch) return [`a claim without a new epoch ${where}`]
  if (isClaim && write.token === before.token) return [`a claim without a new token ${where}`]
  if (write.epoch === before.epoch && before.token !== write.token) return [`another token in one epoch ${where}`]
  return []
}

function keyBreaches(write: AcceptedWrite, holders: readonly AcceptedWrite[]): string[] {
  const where = `at ${write.position} for key ${write.key}`
  const slots = holders.map(({ slot }) => slot)
  return [
    ...(holders.length > write.limit ? [`${holders.length} holders, limit ${write.limit}, ${where}`] : []),
    ...(new Set(slots).size < slots.length ? [`a slot taken twice: ${slots.join()} ${where}`] : []),
    ...(slots.some((slot) => slot === null || slot < 0 || slot >= write.limit)
      ? [`slots ${slots.join()} ${where}`]
      : []),
  ]
}

/** The most runs of a key that were running at one instant. */
export function mostHolders(writes: readonly AcceptedWrite[], key: string): number {
  const running = new Set<string>()
  let most = 0
  for (const { key: own, runId, status } of writes) {
    if (own !== key) continue
    if (status === 'running') running.add(runId)
    else running.delete(runId)
    most = Math.max(most, running.size)
  }
  return most
}
