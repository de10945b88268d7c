import { CompiledQuery } from 'kysely'
import type { Migration, MigrationContext } from './migration'

/** For Postgres, a function that creates a run: for triggers, and for everybody who speaks SQL and no TypeScript. */
export const enqueueFunction: Migration = {
  version: 3,
  minReader: 2,
  build: (context) =>
    context.dialect === 'postgres' ? [{ compile: () => CompiledQuery.raw(createFunction(context)) }] : [],
}

function createFunction({ name, written, channel }: MigrationContext): string {
  const shown = literal(name('enqueue'))
  return `
create or replace function ${written('enqueue')} (job text, payload jsonb default null, options jsonb default '{}') returns text
language plpgsql
-- Whoever calls it need not have the tables on a search path.
set search_path from current
as $function$
#variable_conflict use_variable
declare
  mistake text;
  run_id text;
  holder_id text;
  holder_payload json;
  created timestamptz := date_trunc('milliseconds', statement_timestamp());
  run_at timestamptz;
  labels jsonb := coalesce(nullif(options -> 'labels', 'null'), '{}');
  key text := options ->> 'idempotencyKey';
  owner text := coalesce(options ->> 'tenant', '');
begin
  ${refusals(shown)}
  run_at := greatest(created, coalesce(
    cast(options ->> 'runAt' as timestamptz),
    created + coalesce(cast(options ->> 'delay' as double precision), 0) * interval '1 millisecond'));
  run_id := ${ulid()};

  -- The run that has the key may be deleted between the two statements.
  for round in 1 .. 5 loop
    insert into ${written('runs')} (id, tenant, job_name, job_version, payload, status, idempotency_key, concurrency_key,
      concurrency_limit, hold_key_while_waiting, priority, available_at, timeout_ms, created_at, updated_at)
    values (run_id, owner, job, options ->> 'version', cast(cast(payload as text) as json), 'pending', key,
      options ->> 'concurrencyKey', coalesce(cast(options ->> 'concurrencyLimit' as integer), 1),
      coalesce(cast(cast(options ->> 'holdKeyWhileWaiting' as boolean) as integer), 0),
      coalesce(cast(options ->> 'priority' as integer), 0), date_trunc('milliseconds', run_at),
      cast(options ->> 'timeout' as bigint), created, created)
    on conflict do nothing;
    if found then
      insert into ${written('run_labels')} (run_id, name, value) select run_id, l.key, l.value from jsonb_each_text(labels) as l;
      perform pg_notify(${literal(channel)}, '{"from":"","due":true,"runs":[]}');
      return run_id;
    end if;
    select r.id, r.payload into holder_id, holder_payload from ${written('runs')} as r
      where r.tenant = owner and r.job_name = job and r.idempotency_key = key;
    if found then
      if options ->> 'onConflict' = 'reject' and cast(holder_payload as jsonb) is distinct from payload then
        raise exception using errcode = 'unique_violation', message = format(
          '%s(): run %s of job "%s" has the idempotency key "%s" and another payload.', ${shown}, holder_id, job, key);
      end if;
      return holder_id;
    end if;
  end loop;
  raise exception using errcode = 'serialization_failure',
    message = format('%s(): runs with the idempotency key "%s" keep coming and going. Try again.', ${shown}, key);
end
$function$`
}

const OPTIONS = {
  idempotencyKey: 'string',
  onConflict: 'string',
  concurrencyKey: 'string',
  concurrencyLimit: 'number',
  holdKeyWhileWaiting: 'boolean',
  delay: 'number',
  runAt: 'string',
  priority: 'number',
  tenant: 'string',
  labels: 'object',
  timeout: 'number',
  version: 'string',
} as const

const HUNDRED_YEARS_MS = 100 * 365.25 * 86_400_000

/** The rules of `trigger()`, each with what is said of who breaks it. */
function refusals(shown: string): string {
  const known = Object.entries(OPTIONS).map(([option, type]) => `('${option}', '${type}')`)
  const text = ['tenant', 'idempotencyKey', 'concurrencyKey', 'version']
    .map((option) => `when length(options ->> '${option}') > 512 then '${option} is longer than 512 characters'`)
    .join('\n    ')
  const number = (option: keyof typeof OPTIONS) => `cast(options ->> '${option}' as numeric)`
  const isInteger = (option: keyof typeof OPTIONS, least: number, most: number) =>
    `${number(option)} not between ${least} and ${most} or ${number(option)} <> trunc(${number(option)})`
  return `if jsonb_typeof(options) is distinct from 'object' then
    raise exception using errcode = 'invalid_parameter_value', message = ${shown} || '(): options must be an object.';
  end if;
  select case when k.type is null
      then format('there is no option %s. There are ${Object.keys(OPTIONS).join(', ')}', g.key)
      else format('%s must be of the JSON type %s, not %s', g.key, k.type, jsonb_typeof(g.value)) end
    into mistake
    from jsonb_each(options) as g left join (values ${known.join(', ')}) as k (name, type) on k.name = g.key
    where k.type is null or jsonb_typeof(g.value) not in ('null', k.type) limit 1;
  mistake := coalesce(mistake, case
    when job is null or job = '' or length(job) > 512 then 'job must be the name of a job'
    when options ->> 'idempotencyKey' = '' or options ->> 'concurrencyKey' = '' then 'a key must not be empty'
    when octet_length(cast(payload as text)) > 1048576 then 'the payload has more than a megabyte'
    when options ->> 'onConflict' not in ('return', 'reject') then 'onConflict must be return or reject'
    when options ->> 'delay' is not null and options ->> 'runAt' is not null then 'give either delay or runAt, not both'
    when cast(options ->> 'runAt' as timestamptz) not between '0001-01-01Z' and '9999-12-31T23:59:59.999Z'
      then 'runAt must be an instant of the years 1 to 9999'
    when ${number('delay')} not between 0 and ${HUNDRED_YEARS_MS} then 'delay must be milliseconds from 0 up to 100 years'
    when ${isInteger('concurrencyLimit', 1, 1000)} then 'concurrencyLimit must be an integer from 1 to 1000'
    when ${isInteger('priority', -(2 ** 31 - 1), 2 ** 31 - 1)} then 'priority must be a 32-bit integer'
    when ${isInteger('timeout', 1, HUNDRED_YEARS_MS)} then 'timeout must be milliseconds from 1 up to 100 years'
    ${text}
    when (select count(*) from jsonb_object_keys(labels)) > 32 then 'a run can have 32 labels at most'
    when exists (select 1 from jsonb_each(labels) as l where jsonb_typeof(l.value) <> 'string')
      then 'the value of each label must be a string'
    when exists (select 1 from jsonb_each_text(labels) as l where greatest(length(l.key), length(l.value)) > 512)
      then 'a label is longer than 512 characters'
  end);
  if mistake is not null then
    raise exception using errcode = 'invalid_parameter_value', message = format('%s(): %s.', ${shown}, mistake);
  end if;`
}

/** The time in ten characters and chance in sixteen, so that ids sort by the time they were made. */
function ulid(): string {
  const alphabet = "'0123456789ABCDEFGHJKMNPQRSTVWXYZ'"
  const ms = 'cast(extract(epoch from clock_timestamp()) * 1000 as bigint)'
  return `(select string_agg(substr(${alphabet}, cast((${ms} >> (5 * (9 - n))) & 31 as integer) + 1, 1), '' order by n)
      from generate_series(0, 9) as n)
    || (select string_agg(substr(${alphabet}, (get_byte(chance.bytes, n) & 31) + 1, 1), '' order by n)
      from generate_series(0, 15) as n, (select uuid_send(gen_random_uuid()) as bytes) as chance)`
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
