import { sql } from 'kysely'
import type { SqlDurably } from '../../src/index'
import type { AcceptedWrite } from '../processes/audit'
import { outcomeOf } from './programs/five-steps'
import type { BodyStart } from './witness'

/** As on SQLite, and for a row of a step which one it is. */
export interface PostgresWrite extends AcceptedWrite {
  readonly stepName: string | null
  readonly stepStatus: string | null
}

const COLUMNS = 'concurrency_key, concurrency_limit, status, lease_epoch, claim_token, concurrency_slot, owner_id'

const PARTS = [
  ['runs', 'new.id', 'null, null'],
  ['steps', 'new.run_id', 'new.name, new.status'],
  ['logs', 'new.run_id', 'null, null'],
  ['run_events', 'new.run_id', 'null, null'],
] as const

/**
 * Makes the database itself record, in the same transaction, every write that it accepts for a run. All of them hold the
 * lock of the run's row, so that positions are in the order in which the writes to a run became visible. A claim that
 * finds more holders of its key than the limit is recorded as well.
 */
export async function installAudit(durably: SqlDurably): Promise<void> {
  const triggers = PARTS.map(
    ([table, id, step]) => `
      create function audit_${table}() returns trigger language plpgsql as $$ begin
        insert into audit (source, run_id, step_name, step_status, ${COLUMNS})
          select '${table}', r.id, ${step}, ${COLUMNS.replaceAll(/(\w+)/g, 'r.$1')} from durably_runs as r where r.id = ${id};
        return null;
      end $$;
      create trigger audit_${table} after insert or update on durably_${table}
        for each row execute function audit_${table}();`,
  )
  await execute(
    durably,
    `create table audit (position bigserial primary key, source text, run_id text, step_name text, step_status text,
       concurrency_key text, concurrency_limit integer, status text, lease_epoch bigint, claim_token text,
       concurrency_slot integer, owner_id text);
     create table excess (run_id text, holders bigint);
     ${triggers.join('\n')}
     create function audit_holders() returns trigger language plpgsql as $$ begin
       insert into excess select new.id, count(*) from durably_runs as r
         where r.tenant = new.tenant and r.concurrency_key = new.concurrency_key and r.status = 'running'
           and r.concurrency_slot is not null
         having count(*) > new.concurrency_limit;
       return null;
     end $$;
     create trigger audit_holders after update on durably_runs for each row
       when (new.status = 'running' and old.status <> 'running' and new.concurrency_key is not null)
       execute function audit_holders();`,
  )
}

export async function execute(durably: SqlDurably, text: string): Promise<readonly Record<string, unknown>[]> {
  return (await sql.raw<Record<string, unknown>>(text).execute(durably.db)).rows
}

export async function readAudit(durably: SqlDurably): Promise<readonly PostgresWrite[]> {
  const rows = await execute(
    durably,
    `select position, source, run_id as "runId", concurrency_key as "key", concurrency_limit as "limit", status,
       lease_epoch as epoch, claim_token as token, concurrency_slot as slot, owner_id as owner, step_name as "stepName",
       step_status as "stepStatus" from audit order by position`,
  )
  return rows.map((row) => {
    const write = row as unknown as PostgresWrite
    return { ...write, position: Number(write.position), epoch: Number(write.epoch) }
  })
}

/** More holders than the limit, as a trigger saw them in the very transaction that made it so. */
export function readExcess(durably: SqlDurably): Promise<readonly unknown[]> {
  return execute(durably, 'select * from excess')
}

/** Runs of five steps that did not come to what they have to. */
export async function findWrongOutputs(durably: SqlDurably): Promise<readonly unknown[]> {
  const runs = await execute(durably, 'select id, payload::text as payload, output::text as output from durably_runs')
  return runs.filter(({ payload, output }) => {
    const { n } = JSON.parse(String(payload)) as { readonly n: number }
    return output !== JSON.stringify(outcomeOf(n))
  })
}

/** Steps recorded more than once, and bodies that began in spite of a record, in words. */
export function findRepeats(writes: readonly PostgresWrite[], starts: readonly BodyStart[]): readonly string[] {
  const breaches: string[] = []
  const recorded = new Map<string, number>()
  for (const { source, runId, stepName, stepStatus, epoch } of writes) {
    if (source !== 'steps' || stepStatus !== 'completed') continue
    const body = `${runId}/${stepName}`
    if (recorded.has(body)) breaches.push(`${body} was recorded under ${recorded.get(body)} and ${epoch}`)
    recorded.set(body, epoch)
  }
  const seen = new Set<string>()
  for (const { runId, stepName, epoch, pid } of starts) {
    const body = `${runId}/${stepName}`
    const underEpoch = `${body} under ${epoch}`
    if (seen.has(underEpoch)) breaches.push(`${underEpoch} began twice, in ${pid} again`)
    seen.add(underEpoch)
    // Who has a later epoch took the run after the record was there.
    if (epoch > (recorded.get(body) ?? Number.POSITIVE_INFINITY)) breaches.push(`${underEpoch} began after its record`)
  }
  return breaches
}
