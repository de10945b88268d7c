import type { Watch } from './orders'

/** Every write of every transaction that was committed, told by triggers. */
const RECORD_WRITES = `
  create table accepted (
    n bigint generated always as identity, xid text not null default pg_current_xact_id()::text,
    kind text not null, run_id text not null, before json, after json);
  create function note() returns trigger language plpgsql as $$
    declare row json := case when tg_op = 'DELETE' then to_json(old) else to_json(new) end;
    begin
      insert into accepted (kind, run_id, before, after) values (tg_argv[0],
        coalesce(row ->> 'run_id', row ->> 'id'),
        case when tg_op <> 'INSERT' then to_json(old) end, case when tg_op <> 'DELETE' then to_json(new) end);
      return null;
    end $$;
  create trigger note after insert or update or delete on durably_runs for each row execute function note('run');
  create trigger note after insert or update on durably_steps for each row execute function note('step');
  create trigger note after insert on durably_logs for each row execute function note('log');
  create trigger note after insert on durably_run_events for each row execute function note('event');
  create trigger note after insert on durably_signals for each row execute function note('signal');`

export function recordWrites(watch: Watch): Promise<unknown> {
  return watch.query(RECORD_WRITES)
}

type Row = Readonly<Record<string, unknown>>

export interface Write {
  readonly xid: string
  readonly kind: 'run' | 'step' | 'log' | 'event' | 'signal'
  readonly run_id: string
  readonly before: Row | null
  readonly after: Row | null
}

/** Those since the last time, by run and in the order in which they were accepted: who writes a run has its row locked. */
export async function takeWrites(watch: Watch): Promise<ReadonlyMap<string, readonly Write[]>> {
  const rows = await watch.query<Write & Record<string, unknown>>('select * from accepted order by n')
  await watch.query('truncate accepted')
  const byRun = new Map<string, Write[]>()
  for (const row of rows) byRun.set(row.run_id, [...(byRun.get(row.run_id) ?? []), row])
  return byRun
}

const ENDED = ['completed', 'failed', 'timed_out', 'cancelled']
const isEnded = (row: Row) => ENDED.includes(String(row['status']))
const count = (row: Row | null, column: string) => Number(row?.[column] ?? 0)

/** What is wrong with what was accepted, in words. */
export function wrongIn(writes: ReadonlyMap<string, readonly Write[]>): string[] {
  return [...writes].flatMap(([id, own]) => [
    ...wrongChanges(own),
    ...wrongTransactions(own),
    ...lostWakes(id, own, writes),
  ])
}

function wrongChanges(writes: readonly Write[]): string[] {
  const wrong: string[] = []
  let last: Row | null = null
  for (const { kind, run_id, before, after } of writes) {
    if (kind !== 'run') continue
    const say = (what: string) => wrong.push(`${run_id}: ${what}: ${brief(before)} -> ${brief(after)}`)
    if (count(before, 'version') !== count(last, 'version')) say('a change nobody saw')
    if (before !== null && after !== null) for (const what of wrongChange(before, after)) say(what)
    if (before !== null && after === null && !isEnded(before)) say('removed before it ended')
    if (after !== null && after['status'] === 'running' && !hasSlot(after)) say('running without a slot')
    last = after
  }
  return wrong
}

const TELLING = [
  'version',
  'status',
  'lease_epoch',
  'claim_token',
  'commit_no',
  'last_event_sequence',
  'wakes',
  'seq',
  'name',
]

function brief(row: Row | null): string {
  return row === null ? 'nothing' : TELLING.flatMap((name) => (name in row ? [`${name} ${row[name]}`] : [])).join(', ')
}

function hasSlot(run: Row): boolean {
  if (run['concurrency_key'] === null) return true
  return run['concurrency_slot'] !== null && count(run, 'concurrency_slot') < count(run, 'concurrency_limit')
}

function wrongChange(before: Row, after: Row): string[] {
  const isRetry = after['status'] === 'pending' && count(after, 'attempt') === count(before, 'attempt') + 1
  const sameLease = before['lease_epoch'] === after['lease_epoch'] && before['claim_token'] === after['claim_token']
  return [
    ...(count(after, 'version') === count(before, 'version') + 1 ? [] : ['not the next version']),
    ...(isEnded(before) && !(isRetry && before['status'] !== 'completed') ? ['an ended run changed'] : []),
    ...(isEnded(before) && !(count(after, 'lease_epoch') > count(before, 'lease_epoch')) ? ['no new epoch'] : []),
    ...(!isEnded(before) &&
    before['cancel_requested_at'] !== null &&
    !['running', 'cancelled'].includes(String(after['status']))
      ? ['not cancelled']
      : []),
    ...(before['status'] === 'pending' && after['status'] === 'running' && sameLease
      ? ['claimed without a new lease']
      : []),
    ...(isAsleep(after) && count(after, 'wakes') > 0 ? ['asleep, although it was woken'] : []),
    ...(isCommit(before, after) && before['status'] !== 'running' ? ['a commit of nobody'] : []),
  ]
}

/** All who suspend say that they have seen no wakes. */
function isAsleep(run: Row): boolean {
  const waitingFor = run['waiting_for'] as { readonly kind: string } | null
  return run['status'] === 'pending' && waitingFor?.kind === 'steps' && run['available_at'] === null
}

function isCommit(before: Row, after: Row): boolean {
  return count(after, 'commit_no') > count(before, 'commit_no')
}

/** Steps, logs, events, signals and the counters of the run come together, under the lease that holds. */
function wrongTransactions(writes: readonly Write[]): string[] {
  return [...byTransaction(writes).values()].flatMap((own) => {
    const changes = own.filter(({ kind }) => kind === 'run')
    const [first] = changes
    const last = changes.at(-1)
    const of = (kind: Write['kind']) => own.filter((write) => write.kind === kind)
    const commit = changes.find(({ before, after }) => before !== null && after !== null && isCommit(before, after))
    const isHeld = (write: Write) =>
      commit?.before?.['lease_epoch'] === write.after?.['lease_epoch'] &&
      commit?.before?.['claim_token'] === write.after?.['claim_token']
    const seqs = of('event')
      .map(({ after }) => count(after, 'seq'))
      .sort((a, b) => a - b)
    const start = count(first?.before ?? null, 'last_event_sequence')
    const expected = last?.after == null ? [] : range(start, count(last.after, 'last_event_sequence'))
    return [
      ...(of('step').every(isHeld) ? [] : ['a step without the lease']),
      ...(of('log').length === 0 || commit !== undefined ? [] : ['a log without a commit']),
      ...(String(seqs) === String(expected) ? [] : [`events ${seqs} instead of ${expected}`]),
      ...(of('signal').every(({ after }) => after?.['position'] === last?.after?.['wakes'])
        ? []
        : ['a signal that is not counted']),
    ].map((what) => `${own[0]?.run_id}: ${what}: ${own.map(({ kind, after }) => `${kind} ${brief(after)}`)}`)
  })
}

function byTransaction(writes: readonly Write[]): ReadonlyMap<string, readonly Write[]> {
  const groups = new Map<string, Write[]>()
  for (const write of writes) groups.set(write.xid, [...(groups.get(write.xid) ?? []), write])
  return groups
}

function range(after: number, until: number): number[] {
  return Array.from({ length: Math.max(until - after, 0) }, (_, index) => after + index + 1)
}

/** A run that ends wakes its parent in the same transaction, unless that has ended. */
function lostWakes(id: string, own: readonly Write[], all: ReadonlyMap<string, readonly Write[]>): string[] {
  return own.flatMap(({ kind, xid, before, after }) => {
    if (kind !== 'run' || before === null || after === null || isEnded(before) || !isEnded(after)) return []
    const parent = (all.get(String(after['parent_run_id'])) ?? []).filter((write) => write.kind === 'run')
    const isWoken = parent.some(
      (write) => write.xid === xid && count(write.after, 'wakes') > count(write.before, 'wakes'),
    )
    const hasEnded = parent.some((write) => write.after !== null && isEnded(write.after))
    return after['parent_run_id'] === null || isWoken || hasEnded ? [] : [`${id}: ended without waking its parent`]
  })
}
