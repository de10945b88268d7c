import { CompiledQuery } from 'kysely'
import type { Migration, MigrationContext } from './migration'

/** For Postgres, a function that creates a run: for triggers, and for everybody who speaks SQL and no TypeScript. */
export const enqueueFunction: Migration = {
  version: 3,
  minReader: 2,
  build: (context) =>
    context.dialect === 'postgres'
      ? [{ compile: () => CompiledQuery.raw(createEnqueueFunction(context, insertLabels)) }]
      : [],
}

/** The statement of the function that a later migration has otherwise. */
type InsertLabels = (context: { readonly table: (of: 'run_labels') => string }) => string

const insertLabels: InsertLabels = ({ table }) =>
  `insert into ${table('run_labels')} (run_id, name, value) select run_id, l.key, l.value from jsonb_each_text(labels) as l;`

/** Where the tables are, as far as the text of the function knows. */
const PLACE = '@place@'

/**
 * The function names the schema of the tables, so that whoever calls it need not have them on a search path. One that was
 * left behind by durably, as its comment says, is replaced; one of the application is not.
 */
export function createEnqueueFunction(context: MigrationContext, labels: InsertLabels): string {
  const { name, written } = context
  const own = `${PLACE}.${quoted(name('enqueue'))}`
  const signature = `'${own}(text, jsonb, jsonb)'`
  return `do $durably$
declare
  place text := (select quote_ident(n.nspname) from pg_catalog.pg_class as c
    join pg_catalog.pg_namespace as n on n.oid = c.relnamespace where c.oid = cast(${literal(written('runs'))} as regclass));
  signature text := replace(${signature}, '${PLACE}', place);
begin
  if obj_description(to_regprocedure(signature), 'pg_proc') = ${literal(COMMENT)} then
    execute 'drop function ' || signature;
  end if;
  execute replace($text$${functionText(context, labels)}$text$, '${PLACE}', place);
  execute 'comment on function ' || signature || ' is ' || quote_literal(${literal(COMMENT)});
end
$durably$`
}

const COMMENT = 'Creates a run of durably.'

/** What it says to the workers is what `hints.ts` says: a change there is a migration here. */
function functionText({ name, channel }: MigrationContext, labelsOf: InsertLabels): string {
  const shown = literal(name('enqueue'))
  const table = (of: 'runs' | 'run_labels' | 'enqueue') => `${PLACE}.${quoted(name(of))}`
  return `
create function ${table('enqueue')} (job text, payload jsonb default null, options jsonb default '{}') returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $function$
#variable_conflict use_variable
declare
  mistake text;
  run_id text;
  holder_id text;
  holder_payload json;
  is_same boolean;
  created timestamptz := date_trunc('milliseconds', statement_timestamp());
  run_at timestamptz;
  labels jsonb := coalesce(nullif(options -> 'labels', 'null'), '{}');
  key text := options ->> 'idempotencyKey';
  owner text := coalesce(options ->> 'tenant', '');
  now_us bigint := extract(epoch from clock_timestamp()) * 1000000;
begin
  ${refusals(shown)}
  run_at := greatest(created, coalesce(run_at,
    created + coalesce(cast(options ->> 'delay' as double precision), 0) * interval '1 millisecond'));
  run_id := ${ulid()};

  -- The run that has the key may be deleted between the two statements.
  for round in 1 .. 5 loop
    insert into ${table('runs')} (id, tenant, job_name, job_version, payload, status, idempotency_key, concurrency_key,
      concurrency_limit, hold_key_while_waiting, priority, available_at, timeout_ms, created_at, updated_at)
    values (run_id, owner, job, options ->> 'version', cast(cast(payload as text) as json), 'pending', key,
      options ->> 'concurrencyKey', coalesce(${integer('concurrencyLimit')}, 1),
      coalesce(cast(cast(options ->> 'holdKeyWhileWaiting' as boolean) as integer), 0),
      coalesce(${integer('priority')}, 0), date_trunc('milliseconds', run_at),
      ${integer('timeout')}, created, created)
    on conflict do nothing;
    if found then
      ${labelsOf({ table })}
      perform pg_notify(${literal(channel)}, '{"from":"","due":true,"runs":[]}');
      return run_id;
    end if;
    select r.id, r.payload into holder_id, holder_payload from ${table('runs')} as r
      where r.tenant = owner and r.job_name = job and r.idempotency_key = key;
    if found then
      if options ->> 'onConflict' = 'reject' then
        begin
          is_same := cast(holder_payload as jsonb) is not distinct from payload;
        exception when untranslatable_character then
          -- It has what no jsonb can hold.
          is_same := false;
        end;
        if not is_same then
          raise exception using errcode = 'unique_violation', message = format(
            '%s(): run %s of job "%s" has the idempotency key "%s" and another payload.', ${shown}, holder_id, job, key);
        end if;
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

function number(option: keyof typeof OPTIONS): string {
  return `cast(options ->> '${option}' as numeric)`
}

/** JSON has 5.0 as well. */
function integer(option: keyof typeof OPTIONS): string {
  return `cast(${number(option)} as bigint)`
}

/** The rules of `trigger()`, each with what is said of who breaks it. */
function refusals(shown: string): string {
  const known = Object.entries(OPTIONS).map(([option, type]) => `('${option}', '${type}')`)
  const text = ['tenant', 'idempotencyKey', 'concurrencyKey', 'version']
    .map((option) => `when length(options ->> '${option}') > 512 then '${option} is longer than 512 characters'`)
    .join('\n    ')
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
  if mistake is null and options ->> 'runAt' is not null then
    begin
      run_at := cast(options ->> 'runAt' as timestamptz);
    exception when data_exception then
      mistake := 'runAt must be an instant, such as 2030-01-02T03:04:05Z';
    end;
  end if;
  mistake := coalesce(mistake, case
    when job is null or job = '' or length(job) > 512 then 'job must be the name of a job'
    when options ->> 'idempotencyKey' = '' or options ->> 'concurrencyKey' = '' then 'a key must not be empty'
    when octet_length(cast(payload as text)) > 1048576 then 'the payload has more than a megabyte'
    when jsonb_path_exists(payload, 'strict $.**{64} ? (@.type() == "object" || @.type() == "array")')
      then 'the payload is nested deeper than 64 levels'
    when options ->> 'onConflict' not in ('return', 'reject') then 'onConflict must be return or reject'
    when options ->> 'delay' is not null and options ->> 'runAt' is not null then 'give either delay or runAt, not both'
    when run_at not between '0001-01-01Z' and '9999-12-31T23:59:59.999Z'
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

/** The time in ten characters, its microseconds in two and chance in fourteen, so that ids sort as they were made. */
function ulid(): string {
  const alphabet = "'0123456789ABCDEFGHJKMNPQRSTVWXYZ'"
  const digits = (value: string, count: number) =>
    `(select string_agg(substr(${alphabet}, cast((${value} >> (5 * (${count - 1} - n))) & 31 as integer) + 1, 1), '' order by n)
      from generate_series(0, ${count - 1}) as n)`
  return `${digits('(now_us / 1000)', 10)} || ${digits('(now_us % 1000)', 2)}
    || (select string_agg(substr(${alphabet}, (get_byte(chance.bytes, n) & 31) + 1, 1), '' order by n)
      from generate_series(1, 14) as n, (select uuid_send(gen_random_uuid()) as bytes) as chance)`
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
