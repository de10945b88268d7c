-- enqueue
with created as (
  insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
  select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", cast(cast("t"."payload" as text) as json), 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then ({now} + "t"."afterMs" * interval '1 millisecond') when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
  from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "jobName" text, "jobVersion" text, "payload" text, "idempotencyKey" text, "concurrencyKey" text, "concurrencyLimit" bigint, "holdKeyWhileWaiting" bigint, "priority" bigint, "startAt" timestamptz, "afterMs" double precision, "timeoutMs" double precision, "parentRunId" text, "scheduleId" text, "scheduledFor" timestamptz, "traceParent" text, "eventCount" bigint)
  where (
    select case when cast($2 as text) = '' then '' else set_config('lock_timeout', cast($3 as text), true) end
  ) is not null
  order by t.n
  on conflict
  do nothing
  returning *
), labelled as (
  insert into "durably_run_labels" (run_id, name, value, tenant, created_at)
  select c.id, t."labelName", t."labelValue", c.tenant, c.created_at
  from json_to_recordset(cast(cast(cast($4 as text) as text) as json)) as t (n integer, "id" text, "labelName" text, "labelValue" text)
  join created as c on c.id = t.id
), told as (
  insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
  select c.id, t.seq, t.type, cast(cast("t"."payload" as text) as json), {now}
  from json_to_recordset(cast(cast(cast($5 as text) as text) as json)) as t (n integer, "id" text, "seq" bigint, "type" text, "payload" text)
  join created as c on c.id = t.id
)
select c.id, c.version, to_char(c.available_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as available_at, to_char(c.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at
from created as c;

-- enqueue: with a key
with created as (
  insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
  select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", cast(cast("t"."payload" as text) as json), 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then ({now} + "t"."afterMs" * interval '1 millisecond') when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
  from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "jobName" text, "jobVersion" text, "payload" text, "idempotencyKey" text, "concurrencyKey" text, "concurrencyLimit" bigint, "holdKeyWhileWaiting" bigint, "priority" bigint, "startAt" timestamptz, "afterMs" double precision, "timeoutMs" double precision, "parentRunId" text, "scheduleId" text, "scheduledFor" timestamptz, "traceParent" text, "eventCount" bigint)
  where (
    select case when cast($2 as text) = '' then '' else set_config('lock_timeout', cast($3 as text), true) end
  ) is not null
  order by t.n
  on conflict
  do nothing
  returning *
)
select c.id, c.version, to_char(c.available_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as available_at, to_char(c.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at
from created as c;

-- enqueue: a key that may refuse
-- as enqueue: with a key, 1

with wanted as materialized (
  select t.*
  from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "jobName" text, "idempotencyKey" text, "payload" text, "isRefusing" bigint, "scheduleId" text, "scheduledFor" timestamptz)
), found as materialized (
  select t.n, r.id
  from wanted as t
  join "durably_runs" as r on r.id = t.id
  union
  select t.n, r.id
  from wanted as t
  join "durably_runs" as r on r.tenant = t.tenant
  and r.job_name = t."jobName"
  and r.idempotency_key = t."idempotencyKey"
  union
  select t.n, r.id
  from wanted as t
  join "durably_runs" as r on r.schedule_id = t."scheduleId"
  and r.scheduled_for = t."scheduledFor"
), conflict as materialized (
  select t.n, r.id
  from wanted as t
  join "durably_runs" as r on r.tenant = t.tenant
  and r.job_name = t."jobName"
  and r.idempotency_key = t."idempotencyKey"
  where t."isRefusing" = 1
  and r.id <> t.id
  and not (r.payload::text is not distinct
    from cast(cast("t"."payload" as text) as json)::text
  )
), gone as (
  delete from "durably_runs" as r using wanted as t
  where r.id = t.id
  and age(r.xmin) <= 0
  and ( exists (
      select 1
      from conflict
    )
    or exists (
      select 1
      from wanted as w
      where w.n not in (
        select f.n
        from found as f
      )
    )
  )
  returning r.id
), gone_labels as (
  delete from "durably_run_labels" as l using gone as g
  where l.run_id = g.id
), gone_events as (
  delete from "durably_run_events" as e using gone as g
  where e.run_id = g.id
)
select f.n, c.id is not null as "isConflict", {columns of r: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from found as f
join "durably_runs" as r on r.id = f.id
left join conflict as c on c.n = f.n
and c.id = f.id
order by f.n;

-- claim
with keyed as materialized (
  select (
    select true
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.available_at <= {now}
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
      )
    )
    and (r.crash_count < 2
      or cast($2 as bigint) = 0
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and r.concurrency_key is not null
    order by r.priority desc, r.available_at, r.id
    limit 1
  ) is not null as are_due
), keyless as materialized (
  select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count"
  from "durably_runs" as r
  where not (
    select are_due
    from keyed
  )
  and (r.status || '') = 'pending'
  and r.available_at <= {now}
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($3 as text) as text) as json))
    )
  )
  and (r.crash_count < 2
    or cast($4 as bigint) = 0
  )
  and r.job_name <> all(array(
      select q.job_name
      from "durably_paused_jobs" as q
    )
  )
  and r.concurrency_key is null
  order by r.priority desc, r.available_at, r.id
  limit cast($5 as bigint)
  for update of r skip locked
), picked as materialized (
  select *
  from keyless
), wanted as materialized (
  select r.*
  from picked as r
  where r.crash_count < 2
  or r.id = (
    select s.id
    from picked as s
    where s.crash_count >= 2
    order by s.priority desc, s.available_at, s.id
    limit 1
  )
), placed as materialized (
  select ctid, null::integer as slot
  from wanted
), claimed as (
  update "durably_runs" as r
  set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = cast($6 as text), owner_id = cast($7 as text), lease_until = ({now} + cast($8 as double precision) * interval '1 millisecond'), leader_epoch = null, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, placed.slot) end, waiting_for = null, deadline_at = case when r.deadline_at is null
  and r.timeout_ms is not null then ({now} + r.timeout_ms * interval '1 millisecond') else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($9 as bigint)
  from placed
  where r.ctid = placed.ctid
  and concat(r.status) = 'pending'
  returning r.*
), told as (
  insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
  select c.id, c.last_event_sequence - cast($10 as bigint) + cast(e.value ->> 0 as bigint), cast(e.value ->> 1 as text), cast(cast(cast(e.value ->> 2 as text) as text) as json), {now}
  from claimed as c
  cross join json_array_elements(cast(cast(cast($11 as text) as text) as json)) as e
)
select t.*, {columns of c: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "c"."id"
) as labels
from (
  select (
    select are_due
    from keyed
  ) as has_keys, (
    select count(*)
    from claimed
  ) < (
    select count(*)
    from placed
  ) as is_contended, (
    select count(*)
    from picked
  ) > (
    select count(*)
    from placed
  ) as has_passed_over
) as t
left join claimed as c on true;

with recursive keyless as materialized (
  select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count"
  from "durably_runs" as r
  where (r.status || '') = 'pending'
  and r.available_at <= {now}
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
    )
  )
  and (r.crash_count < 2
    or cast($2 as bigint) = 0
  )
  and r.job_name <> all(array(
      select q.job_name
      from "durably_paused_jobs" as q
    )
  )
  and r.concurrency_key is null
  order by r.priority desc, r.available_at, r.id
  limit cast($3 as bigint)
  for update of r skip locked
), front as materialized (
  select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count", (r.concurrency_key is null
    or r.concurrency_slot is not null
    or (
      select count(*)
      from "durably_runs" as a
      where a.concurrency_slot is not null
      and a.tenant = "r"."tenant"
      and a.concurrency_key = "r"."concurrency_key"
      and a.concurrency_slot < "r"."concurrency_limit"
    ) < r.concurrency_limit
  ) as is_free
  from "durably_runs" as r
  where (r.status || '') = 'pending'
  and r.available_at <= {now}
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($4 as text) as text) as json))
    )
  )
  and (r.crash_count < 2
    or cast($5 as bigint) = 0
  )
  and r.job_name <> all(array(
      select q.job_name
      from "durably_paused_jobs" as q
    )
  )
  and r.concurrency_key is not null
  order by r.priority desc, r.available_at, r.id
  limit cast($6 as bigint) + 32
), blocked as materialized (
  select count(*) = cast($7 as bigint) + 32
  and count(*) filter (
    where is_free
  ) < cast($8 as bigint) as is_so
  from front
), beyond as materialized (
  select r.tenant, r.concurrency_key, r.priority, r.available_at, r.id
  from "durably_runs" as r
  where (
    select is_so
    from blocked
  )
  and cast($9 as bigint) = 1
  and (r.status || '') = 'pending'
  and r.available_at <= {now}
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($10 as text) as text) as json))
    )
  )
  and (r.crash_count < 2
    or cast($11 as bigint) = 0
  )
  and r.job_name <> all(array(
      select q.job_name
      from "durably_paused_jobs" as q
    )
  )
  and r.concurrency_key is not null
  order by r.priority desc, r.available_at, r.id offset cast($12 as bigint) + 32
  limit 128
), priorities (priority, nth) as (
  select n.priority, 1
  from (
    select min(priority) as priority
    from beyond
    having count(*) = 128
  ) as k
  cross join lateral (
    select r.priority
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.concurrency_key is not null
    and r.priority < k.priority
    order by r.priority desc
    limit 1
  ) as n
  union all
  select n.priority, k.nth + 1
  from priorities as k
  cross join lateral (
    select r.priority
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.concurrency_key is not null
    and r.priority < k.priority
    order by r.priority desc
    limit 1
  ) as n
  where k.nth < 4
), ahead as (
  select *
  from beyond
  union all
  select h.*
  from (
    select priority
    from priorities
    limit 4
  ) as k
  cross join lateral (
    select r.tenant, r.concurrency_key, r.priority, r.available_at, r.id
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.available_at <= {now}
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($13 as text) as text) as json))
      )
    )
    and (r.crash_count < 2
      or cast($14 as bigint) = 0
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and r.concurrency_key is not null
    and r.priority = k.priority
    order by r.priority desc, r.available_at, r.id
    limit 32
  ) as h
), keys_ahead as (
  select r.tenant, r.concurrency_key as key
  from (
    select distinct on (tenant, concurrency_key) *
    from ahead
    where (tenant, concurrency_key) not in (
      select tenant, concurrency_key
      from front
      where not is_free
    )
    order by tenant, concurrency_key, priority desc, available_at, id
  ) as r
  order by r.priority desc, r.available_at, r.id
  limit 64
), keys (tenant, key, nth) as (
  select first.*, 1
  from (
    select r.tenant, r.concurrency_key
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.concurrency_key is not null
    and (
      select is_so
      from blocked
    )
    and (r.tenant, r.concurrency_key) >= (cast($15 as text), cast($16 as text))
    order by r.tenant, r.concurrency_key
    limit 1
  ) as first
  union all
  select n.*, k.nth + 1
  from keys as k
  cross join lateral (
    select r.tenant, r.concurrency_key
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.concurrency_key is not null
    and (r.tenant, r.concurrency_key) > (k.tenant, k.key)
    order by r.tenant, r.concurrency_key
    limit 1
  ) as n
  where k.nth < 64
), keys_looked_at as materialized (
  select tenant, key
  from keys
  union all
  select tenant, key
  from keys_ahead
), found as (
  select "front"."ctid", "front"."id", "front"."tenant", "front"."concurrency_key", "front"."concurrency_slot", "front"."concurrency_limit", "front"."priority", "front"."available_at", "front"."crash_count"
  from front
  where is_free
  union all
  select "h"."ctid", "h"."id", "h"."tenant", "h"."concurrency_key", "h"."concurrency_slot", "h"."concurrency_limit", "h"."priority", "h"."available_at", "h"."crash_count"
  from keys_looked_at as k
  cross join lateral (
    select r.concurrency_limit, r.tenant, r.concurrency_key
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.available_at <= {now}
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($17 as text) as text) as json))
      )
    )
    and (r.crash_count < 2
      or cast($18 as bigint) = 0
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and r.concurrency_key is not null
    and r.tenant = k.tenant
    and r.concurrency_key = k.key
    order by r.priority desc, r.available_at, r.id
    limit 1
  ) as first
  cross join lateral (
    select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count"
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.available_at <= {now}
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($19 as text) as text) as json))
      )
    )
    and (r.crash_count < 2
      or cast($20 as bigint) = 0
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and r.concurrency_key is not null
    and r.tenant = k.tenant
    and r.concurrency_key = k.key
    and r.concurrency_slot is null
    and (
      select count(*)
      from "durably_runs" as a
      where a.concurrency_slot is not null
      and a.tenant = "first"."tenant"
      and a.concurrency_key = "first"."concurrency_key"
      and a.concurrency_slot < "first"."concurrency_limit"
    ) < first.concurrency_limit
    order by r.priority desc, r.available_at, r.id
    limit cast($21 as bigint)
  ) as h
  union all
  select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count"
  from keys_looked_at as k
  cross join lateral (
    select r.*, r.ctid
    from "durably_runs" as r
    where r.concurrency_slot is not null
    and r.tenant = k.tenant
    and r.concurrency_key = k.key offset 0
  ) as r
  where (r.status || '') = 'pending'
  and r.available_at <= {now}
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($22 as text) as text) as json))
    )
  )
  and (r.crash_count < 2
    or cast($23 as bigint) = 0
  )
  and r.job_name <> all(array(
      select q.job_name
      from "durably_paused_jobs" as q
    )
  )
), keyed as materialized (
  select r.*
  from (
    select r.id
    from (
      select distinct on (id) *
      from found
    ) as r
    order by r.priority desc, r.available_at, r.id
    limit cast($24 as bigint) + 32
  ) as f
  cross join lateral (
    select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count"
    from "durably_runs" as r
    where r.id = f.id
    and (r.status || '') = 'pending'
    and r.available_at <= {now}
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($25 as text) as text) as json))
      )
    )
    and (r.crash_count < 2
      or cast($26 as bigint) = 0
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and (r.concurrency_key is null
      or r.concurrency_slot is not null
      or (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "r"."tenant"
        and a.concurrency_key = "r"."concurrency_key"
        and a.concurrency_slot < "r"."concurrency_limit"
      ) < r.concurrency_limit
    )
    for update of r skip locked
  ) as r
  limit cast($27 as bigint)
), picked as materialized (
  select *
  from (
    select *
    from keyless
    union all
    select *
    from keyed
  ) as r
  order by r.priority desc, r.available_at, r.id
  limit cast($28 as bigint)
), wanted as materialized (
  select r.*
  from picked as r
  where r.crash_count < 2
  or r.id = (
    select s.id
    from picked as s
    where s.crash_count >= 2
    order by s.priority desc, s.available_at, s.id
    limit 1
  )
), tried as materialized (
  select tenant, concurrency_key, pg_try_advisory_xact_lock( hashtext('durably_slots'), hashtext(tenant || '/' || concurrency_key)) as is_mine
  from (
    select distinct tenant, concurrency_key
    from wanted
    where concurrency_key is not null
    and concurrency_slot is null
  ) as keys_wanted
), ranked as (
  select wanted.*, row_number() over ( partition by tenant, concurrency_key, concurrency_slot is null
    order by priority desc, available_at, id
  ) as nth
  from wanted
), placed as materialized (
  select ctid, null::integer as slot
  from wanted
  where concurrency_key is null
  or concurrency_slot is not null
  union all
  select of_key.ctid, of_key.slot
  from (
    select ranked.ctid, (
      select s.slot
      from generate_series(0, ranked.concurrency_limit - 1) as s (slot)
      where not exists (
        select 1
        from "durably_runs" as a
        where a.tenant = ranked.tenant
        and a.concurrency_key = ranked.concurrency_key
        and a.concurrency_slot = s.slot
      )
      order by s.slot offset ranked.nth - 1
      limit 1
    ) as slot
    from ranked
    join tried using (tenant, concurrency_key)
    where tried.is_mine
    and ranked.concurrency_slot is null
  ) as of_key
  where of_key.slot is not null
), claimed as (
  update "durably_runs" as r
  set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = cast($29 as text), owner_id = cast($30 as text), lease_until = ({now} + cast($31 as double precision) * interval '1 millisecond'), leader_epoch = null, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, placed.slot) end, waiting_for = null, deadline_at = case when r.deadline_at is null
  and r.timeout_ms is not null then ({now} + r.timeout_ms * interval '1 millisecond') else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($32 as bigint)
  from placed
  where r.ctid = placed.ctid
  and concat(r.status) = 'pending'
  returning r.*
), told as (
  insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
  select c.id, c.last_event_sequence - cast($33 as bigint) + cast(e.value ->> 0 as bigint), cast(e.value ->> 1 as text), cast(cast(cast(e.value ->> 2 as text) as text) as json), {now}
  from claimed as c
  cross join json_array_elements(cast(cast(cast($34 as text) as text) as json)) as e
)
select t.*, {columns of c: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "c"."id"
) as labels
from (
  select exists (
    select 1
    from tried
    where not is_mine
  )
  or (
    select count(*)
    from claimed
  ) < (
    select count(*)
    from placed
  ) as is_contended, (
    select count(*)
    from picked
  ) > (
    select count(*)
    from placed
  ) as has_passed_over, exists (
    select 1
    from front
  ) as has_keys, (
    select is_so
    from blocked
  ) as is_blocked, (
    select count(*)
    from keys
  ) as walked, last.tenant as last_tenant, last.key as last_key
  from (
    select true
  ) as one
  left join (
    select tenant, key
    from keys
    order by nth desc
    limit 1
  ) as last on true
) as t
left join claimed as c on true;

-- claim: under limits
select pg_advisory_xact_lock(hashtext('durably_limits'), hashtext(cast($1 as text))) as locked
where (
  select set_config('lock_timeout', '50ms', true)
) is not null;

with recursive allowed as materialized (
  select (
    select count(*)
    from generate_series(1, cast($1 as bigint)) as wanted (nth)
    where (cast($2 as bigint) is null
      or (
        select count(*)
        from "durably_runs" as r
        where r.status = 'running'
        and r.job_name = cast($3 as text)
      ) + wanted.nth <= cast($4 as bigint)
    )
    and (cast($5 as bigint) is null
      or (wanted.nth <= cast($6 as bigint)
        and not exists (
          select 1
          from "durably_job_starts" as s
          where s.job_name = cast($7 as text)
          and s.nth = coalesce((
              select max(l.nth)
              from "durably_job_starts" as l
              where l.job_name = cast($8 as text)
            ), 0
          ) - cast($9 as bigint) + wanted.nth
          and s.started_at > ({now} + (- cast($10 as double precision)) * interval '1 millisecond')
        )
      )
    )
  ) as room, coalesce((
      select max(l.nth)
      from "durably_job_starts" as l
      where l.job_name = cast($11 as text)
    ), 0
  ) as last_start
), keyless as materialized (
  select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count"
  from "durably_runs" as r
  where (r.status || '') = 'pending'
  and r.available_at <= {now}
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($12 as text) as text) as json))
    )
  )
  and (r.crash_count < 2
    or cast($13 as bigint) = 0
  )
  and r.job_name <> all(array(
      select q.job_name
      from "durably_paused_jobs" as q
    )
  )
  and r.concurrency_key is null
  order by r.priority desc, r.available_at, r.id
  limit (
    select room
    from allowed
  )
  for update of r skip locked
), front as materialized (
  select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count", (r.concurrency_key is null
    or r.concurrency_slot is not null
    or (
      select count(*)
      from "durably_runs" as a
      where a.concurrency_slot is not null
      and a.tenant = "r"."tenant"
      and a.concurrency_key = "r"."concurrency_key"
      and a.concurrency_slot < "r"."concurrency_limit"
    ) < r.concurrency_limit
  ) as is_free
  from "durably_runs" as r
  where (r.status || '') = 'pending'
  and r.available_at <= {now}
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($14 as text) as text) as json))
    )
  )
  and (r.crash_count < 2
    or cast($15 as bigint) = 0
  )
  and r.job_name <> all(array(
      select q.job_name
      from "durably_paused_jobs" as q
    )
  )
  and r.concurrency_key is not null
  order by r.priority desc, r.available_at, r.id
  limit (
    select room
    from allowed
  ) + 32
), blocked as materialized (
  select count(*) = (
    select room
    from allowed
  ) + 32
  and count(*) filter (
    where is_free
  ) < (
    select room
    from allowed
  ) as is_so
  from front
), beyond as materialized (
  select r.tenant, r.concurrency_key, r.priority, r.available_at, r.id
  from "durably_runs" as r
  where (
    select is_so
    from blocked
  )
  and cast($16 as bigint) = 1
  and (r.status || '') = 'pending'
  and r.available_at <= {now}
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($17 as text) as text) as json))
    )
  )
  and (r.crash_count < 2
    or cast($18 as bigint) = 0
  )
  and r.job_name <> all(array(
      select q.job_name
      from "durably_paused_jobs" as q
    )
  )
  and r.concurrency_key is not null
  order by r.priority desc, r.available_at, r.id offset (
    select room
    from allowed
  ) + 32
  limit 128
), priorities (priority, nth) as (
  select n.priority, 1
  from (
    select min(priority) as priority
    from beyond
    having count(*) = 128
  ) as k
  cross join lateral (
    select r.priority
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.concurrency_key is not null
    and r.priority < k.priority
    order by r.priority desc
    limit 1
  ) as n
  union all
  select n.priority, k.nth + 1
  from priorities as k
  cross join lateral (
    select r.priority
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.concurrency_key is not null
    and r.priority < k.priority
    order by r.priority desc
    limit 1
  ) as n
  where k.nth < 4
), ahead as (
  select *
  from beyond
  union all
  select h.*
  from (
    select priority
    from priorities
    limit 4
  ) as k
  cross join lateral (
    select r.tenant, r.concurrency_key, r.priority, r.available_at, r.id
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.available_at <= {now}
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($19 as text) as text) as json))
      )
    )
    and (r.crash_count < 2
      or cast($20 as bigint) = 0
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and r.concurrency_key is not null
    and r.priority = k.priority
    order by r.priority desc, r.available_at, r.id
    limit 32
  ) as h
), keys_ahead as (
  select r.tenant, r.concurrency_key as key
  from (
    select distinct on (tenant, concurrency_key) *
    from ahead
    where (tenant, concurrency_key) not in (
      select tenant, concurrency_key
      from front
      where not is_free
    )
    order by tenant, concurrency_key, priority desc, available_at, id
  ) as r
  order by r.priority desc, r.available_at, r.id
  limit 64
), keys (tenant, key, nth) as (
  select first.*, 1
  from (
    select r.tenant, r.concurrency_key
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.concurrency_key is not null
    and (
      select is_so
      from blocked
    )
    and (r.tenant, r.concurrency_key) >= (cast($21 as text), cast($22 as text))
    order by r.tenant, r.concurrency_key
    limit 1
  ) as first
  union all
  select n.*, k.nth + 1
  from keys as k
  cross join lateral (
    select r.tenant, r.concurrency_key
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.concurrency_key is not null
    and (r.tenant, r.concurrency_key) > (k.tenant, k.key)
    order by r.tenant, r.concurrency_key
    limit 1
  ) as n
  where k.nth < 64
), keys_looked_at as materialized (
  select tenant, key
  from keys
  union all
  select tenant, key
  from keys_ahead
), found as (
  select "front"."ctid", "front"."id", "front"."tenant", "front"."concurrency_key", "front"."concurrency_slot", "front"."concurrency_limit", "front"."priority", "front"."available_at", "front"."crash_count"
  from front
  where is_free
  union all
  select "h"."ctid", "h"."id", "h"."tenant", "h"."concurrency_key", "h"."concurrency_slot", "h"."concurrency_limit", "h"."priority", "h"."available_at", "h"."crash_count"
  from keys_looked_at as k
  cross join lateral (
    select r.concurrency_limit, r.tenant, r.concurrency_key
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.available_at <= {now}
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($23 as text) as text) as json))
      )
    )
    and (r.crash_count < 2
      or cast($24 as bigint) = 0
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and r.concurrency_key is not null
    and r.tenant = k.tenant
    and r.concurrency_key = k.key
    order by r.priority desc, r.available_at, r.id
    limit 1
  ) as first
  cross join lateral (
    select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count"
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.available_at <= {now}
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($25 as text) as text) as json))
      )
    )
    and (r.crash_count < 2
      or cast($26 as bigint) = 0
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and r.concurrency_key is not null
    and r.tenant = k.tenant
    and r.concurrency_key = k.key
    and r.concurrency_slot is null
    and (
      select count(*)
      from "durably_runs" as a
      where a.concurrency_slot is not null
      and a.tenant = "first"."tenant"
      and a.concurrency_key = "first"."concurrency_key"
      and a.concurrency_slot < "first"."concurrency_limit"
    ) < first.concurrency_limit
    order by r.priority desc, r.available_at, r.id
    limit (
      select room
      from allowed
    )
  ) as h
  union all
  select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count"
  from keys_looked_at as k
  cross join lateral (
    select r.*, r.ctid
    from "durably_runs" as r
    where r.concurrency_slot is not null
    and r.tenant = k.tenant
    and r.concurrency_key = k.key offset 0
  ) as r
  where (r.status || '') = 'pending'
  and r.available_at <= {now}
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($27 as text) as text) as json))
    )
  )
  and (r.crash_count < 2
    or cast($28 as bigint) = 0
  )
  and r.job_name <> all(array(
      select q.job_name
      from "durably_paused_jobs" as q
    )
  )
), keyed as materialized (
  select r.*
  from (
    select r.id
    from (
      select distinct on (id) *
      from found
    ) as r
    order by r.priority desc, r.available_at, r.id
    limit (
      select room
      from allowed
    ) + 32
  ) as f
  cross join lateral (
    select "r"."ctid", "r"."id", "r"."tenant", "r"."concurrency_key", "r"."concurrency_slot", "r"."concurrency_limit", "r"."priority", "r"."available_at", "r"."crash_count"
    from "durably_runs" as r
    where r.id = f.id
    and (r.status || '') = 'pending'
    and r.available_at <= {now}
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($29 as text) as text) as json))
      )
    )
    and (r.crash_count < 2
      or cast($30 as bigint) = 0
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and (r.concurrency_key is null
      or r.concurrency_slot is not null
      or (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "r"."tenant"
        and a.concurrency_key = "r"."concurrency_key"
        and a.concurrency_slot < "r"."concurrency_limit"
      ) < r.concurrency_limit
    )
    for update of r skip locked
  ) as r
  limit (
    select room
    from allowed
  )
), picked as materialized (
  select *
  from (
    select *
    from keyless
    union all
    select *
    from keyed
  ) as r
  order by r.priority desc, r.available_at, r.id
  limit (
    select room
    from allowed
  )
), wanted as materialized (
  select r.*
  from picked as r
  where r.crash_count < 2
  or r.id = (
    select s.id
    from picked as s
    where s.crash_count >= 2
    order by s.priority desc, s.available_at, s.id
    limit 1
  )
), tried as materialized (
  select tenant, concurrency_key, pg_try_advisory_xact_lock( hashtext('durably_slots'), hashtext(tenant || '/' || concurrency_key)) as is_mine
  from (
    select distinct tenant, concurrency_key
    from wanted
    where concurrency_key is not null
    and concurrency_slot is null
  ) as keys_wanted
), ranked as (
  select wanted.*, row_number() over ( partition by tenant, concurrency_key, concurrency_slot is null
    order by priority desc, available_at, id
  ) as nth
  from wanted
), placed as materialized (
  select ctid, null::integer as slot
  from wanted
  where concurrency_key is null
  or concurrency_slot is not null
  union all
  select of_key.ctid, of_key.slot
  from (
    select ranked.ctid, (
      select s.slot
      from generate_series(0, ranked.concurrency_limit - 1) as s (slot)
      where not exists (
        select 1
        from "durably_runs" as a
        where a.tenant = ranked.tenant
        and a.concurrency_key = ranked.concurrency_key
        and a.concurrency_slot = s.slot
      )
      order by s.slot offset ranked.nth - 1
      limit 1
    ) as slot
    from ranked
    join tried using (tenant, concurrency_key)
    where tried.is_mine
    and ranked.concurrency_slot is null
  ) as of_key
  where of_key.slot is not null
), claimed as (
  update "durably_runs" as r
  set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = cast($31 as text), owner_id = cast($32 as text), lease_until = ({now} + cast($33 as double precision) * interval '1 millisecond'), leader_epoch = null, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, placed.slot) end, waiting_for = null, deadline_at = case when r.deadline_at is null
  and r.timeout_ms is not null then ({now} + r.timeout_ms * interval '1 millisecond') else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($34 as bigint)
  from placed
  where r.ctid = placed.ctid
  and concat(r.status) = 'pending'
  returning r.*
), told as (
  insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
  select c.id, c.last_event_sequence - cast($35 as bigint) + cast(e.value ->> 0 as bigint), cast(e.value ->> 1 as text), cast(cast(cast(e.value ->> 2 as text) as text) as json), {now}
  from claimed as c
  cross join json_array_elements(cast(cast(cast($36 as text) as text) as json)) as e
), noted as (
  insert into "durably_job_starts" (job_name, nth, started_at)
  select cast($37 as text), (
    select last_start
    from allowed
  ) + row_number() over (), {now}
  from claimed
  where cast($38 as bigint) is not null
), forgotten as (
  delete from "durably_job_starts"
  where job_name = cast($39 as text)
  and nth <= (
    select last_start
    from allowed
  ) - 10000
)
select t.*, {columns of c: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "c"."id"
) as labels
from (
  select exists (
    select 1
    from tried
    where not is_mine
  )
  or (
    select count(*)
    from claimed
  ) < (
    select count(*)
    from placed
  ) as is_contended, (
    select count(*)
    from picked
  ) > (
    select count(*)
    from placed
  ) as has_passed_over, exists (
    select 1
    from front
  ) as has_keys, (
    select is_so
    from blocked
  ) as is_blocked, (
    select count(*)
    from keys
  ) as walked, last.tenant as last_tenant, last.key as last_key
  from (
    select true
  ) as one
  left join (
    select tenant, key
    from keys
    order by nth desc
    limit 1
  ) as last on true
) as t
left join claimed as c on true;

select (
  select count(*)
  from "durably_runs" as r
  where r.status = 'running'
  and r.job_name = cast($1 as text)
) as running, to_char({now} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now, to_char(((
      select s.started_at
      from "durably_job_starts" as s
      where s.job_name = cast($2 as text)
      and s.nth = coalesce((
          select max(l.nth)
          from "durably_job_starts" as l
          where l.job_name = cast($3 as text)
        ), 0
      ) - cast($4 as bigint) + 1
    ) + cast($5 as double precision) * interval '1 millisecond'
  ) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
) as opens_at;

-- commit: a step
with c as materialized (
  select *
  from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "runId" text, "epoch" bigint, "token" text, "leaderEpoch" bigint, "commitNo" bigint, "outcome" text, "leaseMs" double precision, "currentStepIndex" bigint, "progress" text, "hasProgressed" bigint, "eventCount" bigint, "cancelledEventCount" bigint, "output" text, "error" text, "errorDetail" text, "delayMs" double precision, "waitingFor" text, "wakesSeen" bigint, "wakesWanted" bigint, "restMs" double precision, "awaited" text)
), locked as materialized (
  select r.*
  from (
    select distinct id collate "C" as id
    from (
      select id
      from (
        select c.n, c."runId" as id
        from c
      ) as t
    ) as given
    where (
      select set_config('lock_timeout', cast($2 as text), true)
    ) is not null
    order by 1
  ) as wanted
  cross join lateral (
    select "r"."id", "r"."status", "r"."lease_epoch", "r"."claim_token", "r"."leader_epoch", "r"."commit_no", "r"."last_event_sequence", "r"."cancel_requested_at", "r"."parent_run_id", "r"."also_awaited_by"
    from "durably_runs" as r
    where r.id = wanted.id
    for update
  ) as r
), held as materialized (
  select c.*, r.id, r.lease_epoch, r.claim_token, r.last_event_sequence, r.parent_run_id, r.also_awaited_by, r.cancel_requested_at is not null as is_flagged
  from c
  join locked as r on r.id = "c"."runId"
  and r.status = 'running'
  and r.lease_epoch = "c"."epoch"
  and r.claim_token = "c"."token"
  and r.leader_epoch is not distinct
  from "c"."leaderEpoch"
  and r.commit_no = "c"."commitNo" - 1
), s as materialized (
  select *
  from json_to_recordset(cast(cast(cast($3 as text) as text) as json)) as t (n integer, "place" bigint, "stepId" text, "name" text, "index" bigint, "kind" text, "status" text, "attempt" bigint, "output" text, "error" text, "errorDetail" text, "checkpoint" text, "waitName" text, "dueAt" timestamptz, "dueInMs" double precision, "minusDurationMs" double precision)
), written as (
  insert into "durably_steps" as s ("id", "run_id", "name", "index", "kind", "status", "attempt", "output", "error", "error_detail", "checkpoint", "wait_name", "due_at", "lease_epoch", "claim_token", "started_at", "completed_at")
  select "s"."stepId", r.id, "s"."name", "s"."index", "s"."kind", "s"."status", "s"."attempt", cast(cast("s"."output" as text) as json), "s"."error", cast(cast("s"."errorDetail" as text) as json), cast(cast("s"."checkpoint" as text) as json), "s"."waitName", coalesce("s"."dueAt", case when "s"."dueInMs" is not null then ({now} + "s"."dueInMs" * interval '1 millisecond') end), r.lease_epoch, r.claim_token, ({now} + "s"."minusDurationMs" * interval '1 millisecond'), case when "s"."status" in ('completed', 'failed') then {now} end
  from s
  join held as r on r.n = s.n
  order by s.n, s.place
  on conflict (id)
  do update
  set due_at = coalesce(s.due_at, excluded.due_at), "name" = "excluded"."name", "index" = "excluded"."index", "kind" = "excluded"."kind", "status" = "excluded"."status", "attempt" = "excluded"."attempt", "output" = "excluded"."output", "error" = "excluded"."error", "error_detail" = "excluded"."error_detail", "checkpoint" = "excluded"."checkpoint", "wait_name" = "excluded"."wait_name", "lease_epoch" = "excluded"."lease_epoch", "claim_token" = "excluded"."claim_token", "started_at" = "excluded"."started_at", "completed_at" = "excluded"."completed_at"
  returning run_id, name, status, due_at
), told as (
  insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
  select r.id, r.last_event_sequence + t."offset", t.type, cast(cast("t"."payload" as text) as json), {now}
  from json_to_recordset(cast(cast(cast($4 as text) as text) as json)) as t (n integer, "offset" bigint, "type" text, "payload" text, "isCancelled" bigint)
  join held as r on r.n = t.n
  where t."isCancelled" is null
  or (t."isCancelled" = 1) = r.is_flagged
), changed as (
  update "durably_runs" as r
  set "version" = r.version + 1, "updated_at" = {now}, "commit_no" = "h"."commitNo", "crash_count" = case when "h"."hasProgressed" = 1 then 0 else r.crash_count end, "current_step_index" = coalesce("h"."currentStepIndex", r.current_step_index), "progress" = coalesce(cast(cast("h"."progress" as text) as json), r.progress), "heartbeat_at" = {now}, "lease_until" = ({now} + "h"."leaseMs" * interval '1 millisecond'), "last_event_sequence" = r.last_event_sequence + "h"."eventCount"
  from held as h
  where r.id = h.id
  returning h.n, r.status, r.last_event_sequence, r.wakes, r.cancel_requested_at
)
select n, status, last_event_sequence, wakes, cancel_requested_at
from changed
where n is not null;

-- commit: all there is
with locked as materialized (
  select r.*
  from (
    select distinct id collate "C" as id
    from (
      select value as id
      from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
      union
      select w.id
      from "durably_runs" as r
      cross join lateral (
        select r.parent_run_id as id
        where r.parent_run_id is not null
        union all
        select value as id
        from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
      ) as w
      where r.id in (
        select value
        from json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
      )
      union
      select r.id
      from json_array_elements(cast(cast(cast($3 as text) as text) as json)) as k
      join "durably_runs" as r on r.tenant = cast(k.value ->> 0 as text)
      and r.job_name = cast(k.value ->> 1 as text)
      and r.idempotency_key = cast(k.value ->> 2 as text)
    ) as given
    where (
      select set_config('lock_timeout', cast($4 as text), true)
    ) is not null
    order by 1
  ) as wanted
  cross join lateral (
    select "r"."id", "r"."status", "r"."lease_epoch", "r"."claim_token", "r"."leader_epoch", "r"."commit_no", "r"."last_event_sequence", "r"."cancel_requested_at", "r"."parent_run_id", "r"."also_awaited_by"
    from "durably_runs" as r
    where r.id = wanted.id
    for update
  ) as r
)
select id
from locked;

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select cast($1 as text), cast($2 as text), cast($3 as text), cast($4 as text), cast(cast($5 as text) as json), 'pending', cast($6 as text), cast($7 as text), cast($8 as bigint), cast($9 as bigint), cast($10 as bigint), case when cast($11 as timestamptz) is null then (coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = cast($12 as text)
    ), {now}
  ) + cast($13 as double precision) * interval '1 millisecond'
) when cast($14 as timestamptz) < coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($15 as text)
  ), {now}
) then coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($16 as text)
  ), {now}
) else cast($17 as timestamptz) end, cast($18 as double precision), cast($19 as text), cast($20 as text), cast($21 as timestamptz), cast($22 as text), cast($23 as bigint), coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($24 as text)
  ), {now}
), {now}
from "durably_runs" as r
where r.id = cast($25 as text)
and r.status = 'running'
and r.lease_epoch = cast($26 as bigint)
and r.claim_token = cast($27 as text)
and r.leader_epoch is not distinct
from cast($28 as bigint)
and r.commit_no = cast($29 as bigint) - 1
on conflict
do nothing;

with created as (
  insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
  select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", cast(cast("t"."payload" as text) as json), 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then ({now} + "t"."afterMs" * interval '1 millisecond') when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
  from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "jobName" text, "jobVersion" text, "payload" text, "idempotencyKey" text, "concurrencyKey" text, "concurrencyLimit" bigint, "holdKeyWhileWaiting" bigint, "priority" bigint, "startAt" timestamptz, "afterMs" double precision, "timeoutMs" double precision, "parentRunId" text, "scheduleId" text, "scheduledFor" timestamptz, "traceParent" text, "eventCount" bigint)
  where exists (
    select 1
    from "durably_runs" as r
    where r.id = cast($2 as text)
    and r.status = 'running'
    and r.lease_epoch = cast($3 as bigint)
    and r.claim_token = cast($4 as text)
    and r.leader_epoch is not distinct
    from cast($5 as bigint)
    and r.commit_no = cast($6 as bigint) - 1
  )
  order by t.n
  on conflict
  do nothing
  returning *
), labelled as (
  insert into "durably_run_labels" (run_id, name, value, tenant, created_at)
  select c.id, t."labelName", t."labelValue", c.tenant, c.created_at
  from json_to_recordset(cast(cast(cast($7 as text) as text) as json)) as t (n integer, "id" text, "labelName" text, "labelValue" text)
  join created as c on c.id = t.id
), told as (
  insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
  select c.id, t.seq, t.type, cast(cast("t"."payload" as text) as json), {now}
  from json_to_recordset(cast(cast(cast($8 as text) as text) as json)) as t (n integer, "id" text, "seq" bigint, "type" text, "payload" text)
  join created as c on c.id = t.id
)
select id
from created;

insert into "durably_steps" as s ("id", "run_id", "name", "index", "kind", "status", "attempt", "output", "error", "error_detail", "checkpoint", "wait_name", "due_at", "lease_epoch", "claim_token", "started_at", "completed_at")
select cast($1 as text), r.id, cast($2 as text), cast($3 as bigint), cast($4 as text), cast($5 as text), cast($6 as bigint), (
  select cast(cast('"' || c.id || '"' as text) as json)
  from "durably_runs" as c
  where c.id = coalesce( (
      select a.id
      from "durably_runs" as a
      where a.id = cast($7 as text)
    ), (
      select b.id
      from "durably_runs" as b
      where b.tenant = cast($8 as text)
      and b.job_name = cast($9 as text)
      and b.idempotency_key = cast($10 as text)
    )
  )
), cast($11 as text), cast(cast($12 as text) as json), cast(cast($13 as text) as json), cast($14 as text), coalesce(cast($15 as timestamptz), case when cast($16 as double precision) is not null then ({now} + cast($17 as double precision) * interval '1 millisecond') end), r.lease_epoch, r.claim_token, ({now} + cast($18 as double precision) * interval '1 millisecond'), case when cast($19 as text) in ('completed', 'failed') then {now} end
from "durably_runs" as r
where r.id = cast($20 as text)
and r.status = 'running'
and r.lease_epoch = cast($21 as bigint)
and r.claim_token = cast($22 as text)
and r.leader_epoch is not distinct
from cast($23 as bigint)
and r.commit_no = cast($24 as bigint) - 1
on conflict (id)
do update
set due_at = coalesce(s.due_at, excluded.due_at), "name" = "excluded"."name", "index" = "excluded"."index", "kind" = "excluded"."kind", "status" = "excluded"."status", "attempt" = "excluded"."attempt", "output" = "excluded"."output", "error" = "excluded"."error", "error_detail" = "excluded"."error_detail", "checkpoint" = "excluded"."checkpoint", "wait_name" = "excluded"."wait_name", "lease_epoch" = "excluded"."lease_epoch", "claim_token" = "excluded"."claim_token", "started_at" = "excluded"."started_at", "completed_at" = "excluded"."completed_at"
returning "output"::text as output;

insert into "durably_logs" ("id", "run_id", "step_name", "level", "message", "data", "timestamp")
select cast($1 as text), r.id, cast($2 as text), cast($3 as text), cast($4 as text), cast(cast($5 as text) as json), cast($6 as timestamptz)
from "durably_runs" as r
where r.id = cast($7 as text)
and r.status = 'running'
and r.lease_epoch = cast($8 as bigint)
and r.claim_token = cast($9 as text)
and r.leader_epoch is not distinct
from cast($10 as bigint)
and r.commit_no = cast($11 as bigint) - 1
on conflict (id)
do nothing;

update "durably_signals"
set consumed_at = {now}
where run_id = cast($1 as text)
and consumed_at is null
and position in (
  select value
  from (
    select cast(value as bigint) as value
    from json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
  ) as listed
)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($3 as text)
  and r.status = 'running'
  and r.lease_epoch = cast($4 as bigint)
  and r.claim_token = cast($5 as text)
  and r.leader_epoch is not distinct
  from cast($6 as bigint)
  and r.commit_no = cast($7 as bigint) - 1
);

update "durably_runs" as r
set "version" = r.version + 1, "updated_at" = {now}, "commit_no" = cast($1 as bigint), "crash_count" = case when cast($2 as bigint) = 1 then 0 else r.crash_count end, "current_step_index" = coalesce(cast($3 as bigint), r.current_step_index), "progress" = coalesce(cast(cast($4 as text) as json), r.progress), "heartbeat_at" = {now}, "lease_until" = ({now} + cast($5 as double precision) * interval '1 millisecond'), "last_event_sequence" = r.last_event_sequence + cast($6 as bigint)
where r.id = cast($7 as text)
and r.status = 'running'
and r.lease_epoch = cast($8 as bigint)
and r.claim_token = cast($9 as text)
and r.leader_epoch is not distinct
from cast($10 as bigint)
and r.commit_no = cast($11 as bigint) - 1
returning status, last_event_sequence, wakes, cancel_requested_at;

-- commit: of many runs
-- as commit: a step, 1

-- commit: ends of plain runs
with c as materialized (
  select *
  from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "runId" text, "epoch" bigint, "token" text, "leaderEpoch" bigint, "commitNo" bigint, "outcome" text, "leaseMs" double precision, "currentStepIndex" bigint, "progress" text, "hasProgressed" bigint, "eventCount" bigint, "cancelledEventCount" bigint, "output" text, "error" text, "errorDetail" text, "delayMs" double precision, "waitingFor" text, "wakesSeen" bigint, "wakesWanted" bigint, "restMs" double precision, "awaited" text)
), locked as materialized (
  select r.*
  from (
    select distinct id collate "C" as id
    from (
      select id
      from (
        select c.n, c."runId" as id
        from c
        union all
        select c.n, w.id
        from c
        cross join lateral (
          select r.parent_run_id, r.also_awaited_by
          from "durably_runs" as r
          where r.id = c."runId" offset 0
        ) as r
        cross join lateral (
          select r.parent_run_id as id
          where r.parent_run_id is not null
          union all
          select value as id
          from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
        ) as w
        where c.outcome is not null
      ) as t
    ) as given
    where (
      select set_config('lock_timeout', cast($2 as text), true)
    ) is not null
    order by 1
  ) as wanted
  cross join lateral (
    select "r"."id", "r"."status", "r"."lease_epoch", "r"."claim_token", "r"."leader_epoch", "r"."commit_no", "r"."last_event_sequence", "r"."cancel_requested_at", "r"."parent_run_id", "r"."also_awaited_by"
    from "durably_runs" as r
    where r.id = wanted.id
    for update
  ) as r
), held as materialized (
  select c.*, r.id, r.lease_epoch, r.claim_token, r.last_event_sequence, r.parent_run_id, r.also_awaited_by, r.cancel_requested_at is not null as is_flagged
  from c
  join locked as r on r.id = "c"."runId"
  and r.status = 'running'
  and r.lease_epoch = "c"."epoch"
  and r.claim_token = "c"."token"
  and r.leader_epoch is not distinct
  from "c"."leaderEpoch"
  and r.commit_no = "c"."commitNo" - 1
), woken as materialized (
  select w.id, count(*) as wakes
  from held as r
  cross join lateral (
    select r.parent_run_id as id
    where r.parent_run_id is not null
    union all
    select value as id
    from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
  ) as w
  where r.outcome is not null
  and (r.is_flagged
    or r.outcome in ('complete', 'fail', 'timeOut', 'cancelled')
  )
  group by w.id
), h as materialized (
  select coalesce(held.id, woken.id) as id, held."runId", woken.wakes as woken, "held"."n", "held"."commitNo", "held"."outcome", "held"."leaseMs", "held"."currentStepIndex", "held"."progress", "held"."hasProgressed", "held"."eventCount", "held"."cancelledEventCount", "held"."output", "held"."error", "held"."errorDetail", "held"."delayMs", "held"."waitingFor", "held"."wakesSeen", "held"."wakesWanted", "held"."restMs", "held"."awaited"
  from held full
  join woken on woken.id = held.id
), changed as (
  update "durably_runs" as r
  set "version" = case when h.n is null then "r"."version" + 1 else case h.outcome when 'complete' then r.version + 1 when 'fail' then r.version + 1 when 'timeOut' then r.version + 1 when 'cancelled' then r.version + 1 when 'retryLater' then r.version + 1 when 'suspend' then r.version + 1 when 'release' then r.version + 1 when 'park' then r.version + 1 else r.version + 1 end end, "updated_at" = case when h.n is null then {now} else case h.outcome when 'complete' then {now} when 'fail' then {now} when 'timeOut' then {now} when 'cancelled' then {now} when 'retryLater' then {now} when 'suspend' then {now} when 'release' then {now} when 'park' then {now} else {now} end end, "commit_no" = case when h.n is null then "r"."commit_no" else case h.outcome when 'complete' then "h"."commitNo" when 'fail' then "h"."commitNo" when 'timeOut' then "h"."commitNo" when 'cancelled' then "h"."commitNo" when 'retryLater' then "h"."commitNo" when 'suspend' then "h"."commitNo" when 'release' then "h"."commitNo" when 'park' then "h"."commitNo" else "h"."commitNo" end end, "crash_count" = case when h.n is null then "r"."crash_count" else case h.outcome when 'complete' then case when "h"."hasProgressed" = 1 then 0 else r.crash_count end when 'fail' then case when "h"."hasProgressed" = 1 then 0 else r.crash_count end when 'timeOut' then case when "h"."hasProgressed" = 1 then 0 else r.crash_count end when 'cancelled' then case when "h"."hasProgressed" = 1 then 0 else r.crash_count end when 'retryLater' then case when "h"."hasProgressed" = 1 then 0 else r.crash_count end when 'suspend' then case when "h"."hasProgressed" = 1 then 0 else r.crash_count end when 'release' then case when "h"."hasProgressed" = 1 then 0 else r.crash_count end when 'park' then case when "h"."hasProgressed" = 1 then 0 else r.crash_count end else case when "h"."hasProgressed" = 1 then 0 else r.crash_count end end end, "current_step_index" = case when h.n is null then "r"."current_step_index" else case h.outcome when 'complete' then coalesce("h"."currentStepIndex", r.current_step_index) when 'fail' then coalesce("h"."currentStepIndex", r.current_step_index) when 'timeOut' then coalesce("h"."currentStepIndex", r.current_step_index) when 'cancelled' then coalesce("h"."currentStepIndex", r.current_step_index) when 'retryLater' then coalesce("h"."currentStepIndex", r.current_step_index) when 'suspend' then coalesce("h"."currentStepIndex", r.current_step_index) when 'release' then coalesce("h"."currentStepIndex", r.current_step_index) when 'park' then coalesce("h"."currentStepIndex", r.current_step_index) else coalesce("h"."currentStepIndex", r.current_step_index) end end, "progress" = case when h.n is null then "r"."progress" else case h.outcome when 'complete' then coalesce(cast(cast("h"."progress" as text) as json), r.progress) when 'fail' then coalesce(cast(cast("h"."progress" as text) as json), r.progress) when 'timeOut' then coalesce(cast(cast("h"."progress" as text) as json), r.progress) when 'cancelled' then coalesce(cast(cast("h"."progress" as text) as json), r.progress) when 'retryLater' then coalesce(cast(cast("h"."progress" as text) as json), r.progress) when 'suspend' then coalesce(cast(cast("h"."progress" as text) as json), r.progress) when 'release' then coalesce(cast(cast("h"."progress" as text) as json), r.progress) when 'park' then coalesce(cast(cast("h"."progress" as text) as json), r.progress) else coalesce(cast(cast("h"."progress" as text) as json), r.progress) end end, "heartbeat_at" = case when h.n is null then "r"."heartbeat_at" else case h.outcome when 'complete' then {now} when 'fail' then {now} when 'timeOut' then {now} when 'cancelled' then {now} when 'retryLater' then {now} when 'suspend' then {now} when 'release' then {now} when 'park' then {now} else {now} end end, "lease_until" = case when h.n is null then "r"."lease_until" else case h.outcome when 'complete' then null when 'fail' then null when 'timeOut' then null when 'cancelled' then null when 'retryLater' then null when 'suspend' then null when 'release' then null when 'park' then null else ({now} + "h"."leaseMs" * interval '1 millisecond') end end, "last_event_sequence" = case when h.n is null then "r"."last_event_sequence" else case h.outcome when 'complete' then r.last_event_sequence + case when r.cancel_requested_at is null then "h"."eventCount" else "h"."cancelledEventCount" end when 'fail' then r.last_event_sequence + case when r.cancel_requested_at is null then "h"."eventCount" else "h"."cancelledEventCount" end when 'timeOut' then r.last_event_sequence + case when r.cancel_requested_at is null then "h"."eventCount" else "h"."cancelledEventCount" end when 'cancelled' then r.last_event_sequence + case when r.cancel_requested_at is null then "h"."eventCount" else "h"."cancelledEventCount" end when 'retryLater' then r.last_event_sequence + case when r.cancel_requested_at is null then "h"."eventCount" else "h"."cancelledEventCount" end when 'suspend' then r.last_event_sequence + case when r.cancel_requested_at is null then "h"."eventCount" else "h"."cancelledEventCount" end when 'release' then r.last_event_sequence + case when r.cancel_requested_at is null then "h"."eventCount" else "h"."cancelledEventCount" end when 'park' then r.last_event_sequence + case when r.cancel_requested_at is null then "h"."eventCount" else "h"."cancelledEventCount" end else r.last_event_sequence + "h"."eventCount" end end, "output" = case when h.n is null then "r"."output" else case h.outcome when 'complete' then case when r.cancel_requested_at is null then cast(cast("h"."output" as text) as json) else "r"."output" end when 'fail' then "r"."output" when 'timeOut' then "r"."output" when 'cancelled' then "r"."output" when 'retryLater' then "r"."output" when 'suspend' then "r"."output" when 'release' then "r"."output" when 'park' then "r"."output" else "r"."output" end end, "error" = case when h.n is null then "r"."error" else case h.outcome when 'complete' then case when r.cancel_requested_at is null then null else "r"."error" end when 'fail' then case when r.cancel_requested_at is null then "h"."error" else "r"."error" end when 'timeOut' then case when r.cancel_requested_at is null then "h"."error" else "r"."error" end when 'cancelled' then "r"."error" when 'retryLater' then case when r.cancel_requested_at is null then "h"."error" else "r"."error" end when 'suspend' then "r"."error" when 'release' then "r"."error" when 'park' then "r"."error" else "r"."error" end end, "error_detail" = case when h.n is null then "r"."error_detail" else case h.outcome when 'complete' then case when r.cancel_requested_at is null then null else "r"."error_detail" end when 'fail' then case when r.cancel_requested_at is null then cast(cast("h"."errorDetail" as text) as json) else "r"."error_detail" end when 'timeOut' then case when r.cancel_requested_at is null then cast(cast("h"."errorDetail" as text) as json) else "r"."error_detail" end when 'cancelled' then "r"."error_detail" when 'retryLater' then case when r.cancel_requested_at is null then cast(cast("h"."errorDetail" as text) as json) else "r"."error_detail" end when 'suspend' then "r"."error_detail" when 'release' then "r"."error_detail" when 'park' then "r"."error_detail" else "r"."error_detail" end end, "status" = case when h.n is null then "r"."status" else case h.outcome when 'complete' then case when r.cancel_requested_at is null then 'completed' else 'cancelled' end when 'fail' then case when r.cancel_requested_at is null then 'failed' else 'cancelled' end when 'timeOut' then case when r.cancel_requested_at is null then 'timed_out' else 'cancelled' end when 'cancelled' then case when r.cancel_requested_at is null then 'cancelled' else 'cancelled' end when 'retryLater' then case when r.cancel_requested_at is null then 'pending' else 'cancelled' end when 'suspend' then case when r.cancel_requested_at is null then 'pending' else 'cancelled' end when 'release' then case when r.cancel_requested_at is null then 'pending' else 'cancelled' end when 'park' then case when r.cancel_requested_at is null then 'pending' else 'cancelled' end else "r"."status" end end, "finished_at" = case when h.n is null then "r"."finished_at" else case h.outcome when 'complete' then {now} when 'fail' then {now} when 'timeOut' then {now} when 'cancelled' then {now} when 'retryLater' then case when r.cancel_requested_at is null then null else {now} end when 'suspend' then case when r.cancel_requested_at is null then null else {now} end when 'release' then case when r.cancel_requested_at is null then null else {now} end when 'park' then case when r.cancel_requested_at is null then null else {now} end else "r"."finished_at" end end, "concurrency_slot" = case when h.n is null then "r"."concurrency_slot" else case h.outcome when 'complete' then null when 'fail' then null when 'timeOut' then null when 'cancelled' then null when 'retryLater' then case when r.cancel_requested_at is null then case when r.hold_key_while_waiting = 1 then r.concurrency_slot end else null end when 'suspend' then case when r.cancel_requested_at is null then case when r.hold_key_while_waiting = 1 then r.concurrency_slot end else null end when 'release' then case when r.cancel_requested_at is null then case when r.hold_key_while_waiting = 1 then r.concurrency_slot end else null end when 'park' then case when r.cancel_requested_at is null then case when r.hold_key_while_waiting = 1 then r.concurrency_slot end else null end else "r"."concurrency_slot" end end, "waiting_for" = case when h.n is null then "r"."waiting_for" else case h.outcome when 'complete' then null when 'fail' then null when 'timeOut' then null when 'cancelled' then null when 'retryLater' then case when r.cancel_requested_at is null then '{"kind":"retry"}' else "r"."waiting_for" end when 'suspend' then case when r.cancel_requested_at is null then cast(cast("h"."waitingFor" as text) as json) else "r"."waiting_for" end when 'release' then case when r.cancel_requested_at is null then null else "r"."waiting_for" end when 'park' then case when r.cancel_requested_at is null then cast(cast("h"."waitingFor" as text) as json) else "r"."waiting_for" end else "r"."waiting_for" end end, "owner_id" = case when h.n is null then "r"."owner_id" else case h.outcome when 'complete' then null when 'fail' then null when 'timeOut' then null when 'cancelled' then null when 'retryLater' then null when 'suspend' then null when 'release' then null when 'park' then null else "r"."owner_id" end end, "attempt" = case when h.n is null then "r"."attempt" else case h.outcome when 'complete' then "r"."attempt" when 'fail' then "r"."attempt" when 'timeOut' then "r"."attempt" when 'cancelled' then "r"."attempt" when 'retryLater' then case when r.cancel_requested_at is null then r.attempt + 1 else "r"."attempt" end when 'suspend' then "r"."attempt" when 'release' then "r"."attempt" when 'park' then "r"."attempt" else "r"."attempt" end end, "available_at" = case when h.n is null then case when "r"."status" = 'pending'
  and ("r"."waiting_for" ->> 'kind') = 'steps' then case when case when "r"."heartbeat_at" <= {now} then "r"."rest_until" end is null
  or case when "r"."heartbeat_at" <= {now} then "r"."rest_until" end <= {now}
  or "r"."wakes" + coalesce(h.woken, 0) >= "r"."wakes_wanted" then "r"."created_at" else least(coalesce("r"."available_at", case when "r"."heartbeat_at" <= {now} then "r"."rest_until" end), case when "r"."heartbeat_at" <= {now} then "r"."rest_until" end) end else "r"."available_at" end else case h.outcome when 'complete' then "r"."available_at" when 'fail' then "r"."available_at" when 'timeOut' then "r"."available_at" when 'cancelled' then "r"."available_at" when 'retryLater' then case when r.cancel_requested_at is null then case when r.deadline_at is null then ({now} + "h"."delayMs" * interval '1 millisecond') else least(({now} + "h"."delayMs" * interval '1 millisecond'), r.deadline_at) end else "r"."available_at" end when 'suspend' then case when r.cancel_requested_at is null then case when (r.wakes + coalesce(h.woken, 0)) = "h"."wakesSeen" then (
    select min(w.due_at)
    from (
      select w.due_at
      from "durably_steps" as w
      where w.run_id = r.id
      and w.status = 'waiting'
      and w.name in (
        select value
        from json_array_elements_text(cast(cast(h.awaited as text) as json))
      )
      union all
      select r.deadline_at
    ) as w
  ) when r.last_signal > "h"."wakesSeen" then r.created_at else case when case when "h"."restMs" <> 0 then ({now} + "h"."restMs" * interval '1 millisecond') end is null
  or case when "h"."restMs" <> 0 then ({now} + "h"."restMs" * interval '1 millisecond') end <= {now}
  or (r.wakes + coalesce(h.woken, 0)) >= "h"."wakesWanted" then r.created_at else least(coalesce((
        select min(w.due_at)
        from (
          select w.due_at
          from "durably_steps" as w
          where w.run_id = r.id
          and w.status = 'waiting'
          and w.name in (
            select value
            from json_array_elements_text(cast(cast(h.awaited as text) as json))
          )
          union all
          select r.deadline_at
        ) as w
      ), case when "h"."restMs" <> 0 then ({now} + "h"."restMs" * interval '1 millisecond') end
    ), case when "h"."restMs" <> 0 then ({now} + "h"."restMs" * interval '1 millisecond') end
  ) end end else "r"."available_at" end when 'release' then case when r.cancel_requested_at is null then r.created_at else "r"."available_at" end when 'park' then case when r.cancel_requested_at is null then null else "r"."available_at" end else "r"."available_at" end end, "wakes_wanted" = case when h.n is null then "r"."wakes_wanted" else case h.outcome when 'complete' then "r"."wakes_wanted" when 'fail' then "r"."wakes_wanted" when 'timeOut' then "r"."wakes_wanted" when 'cancelled' then "r"."wakes_wanted" when 'retryLater' then "r"."wakes_wanted" when 'suspend' then case when r.cancel_requested_at is null then "h"."wakesWanted" else "r"."wakes_wanted" end when 'release' then "r"."wakes_wanted" when 'park' then "r"."wakes_wanted" else "r"."wakes_wanted" end end, "rest_until" = case when h.n is null then "r"."rest_until" else case h.outcome when 'complete' then "r"."rest_until" when 'fail' then "r"."rest_until" when 'timeOut' then "r"."rest_until" when 'cancelled' then "r"."rest_until" when 'retryLater' then "r"."rest_until" when 'suspend' then case when r.cancel_requested_at is null then case when "h"."restMs" <> 0 then ({now} + "h"."restMs" * interval '1 millisecond') end else "r"."rest_until" end when 'release' then "r"."rest_until" when 'park' then "r"."rest_until" else "r"."rest_until" end end, "wakes" = case when h.n is null then "r"."wakes" + coalesce(h.woken, 0) else (r.wakes + coalesce(h.woken, 0)) end
  from h
  where r.id = any(array(
      select id
      from h
    )
  )
  and r.id = h.id
  and (h.n is not null
    or r.finished_at is null
  )
  returning h.n, r.status, r.last_event_sequence, r.wakes, r.cancel_requested_at
)
select n, status, last_event_sequence, wakes, cancel_requested_at
from changed
where n is not null;

-- commit: suspend
-- as commit: ends of plain runs, 1

-- renew
with locked as materialized (
  select r.*
  from (
    select distinct id collate "C" as id
    from (
      select cast(lease.value ->> 0 as text) as id
      from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as lease
    ) as given
    order by 1
  ) as wanted
  cross join lateral (
    select "r"."id", "r"."status", "r"."lease_epoch", "r"."claim_token", "r"."leader_epoch", "r"."commit_no", "r"."last_event_sequence", "r"."cancel_requested_at", "r"."parent_run_id", "r"."also_awaited_by"
    from "durably_runs" as r
    where r.id = wanted.id
    for update skip locked
  ) as r
)
update "durably_runs" as r
set lease_until = ({now} + cast($2 as double precision) * interval '1 millisecond'), heartbeat_at = {now}, updated_at = {now}, version = r.version + 1
from json_array_elements(cast(cast(cast($3 as text) as text) as json)) as lease
join (
  select id as locked_id
  from locked
) as l on l.locked_id = cast(lease.value ->> 0 as text)
where r.id = cast(lease.value ->> 0 as text)
and r.status = 'running'
and r.lease_epoch = cast(lease.value ->> 1 as bigint)
and r.claim_token = cast(lease.value ->> 2 as text)
and r.leader_epoch is not distinct
from cast(lease.value ->> 3 as bigint)
returning id, lease_epoch, claim_token, wakes, cancel_requested_at;

-- recover
select {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels, case when exists (
  select 1
  from "durably_runs" as s
  where s.status = 'running'
  and s.owner_id = r.owner_id
  and s.crash_count >= 2
  and s.id <> r.id
) then 1 else 0 end as is_beside_suspect, case when (r.heartbeat_at > {now}
  and r.lease_until > {now}
) then 1 else 0 end as is_ahead
from "durably_runs" as r
where r.status = 'running'
and r.lease_until <= {now}
and r.id not in (
  select value
  from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
)
order by (r.heartbeat_at > {now}
  and r.lease_until > {now}
), r.crash_count >= 2, r.lease_until, r.id
limit cast($2 as bigint)
for update of r skip locked;

with locked as materialized (
  select r.*
  from (
    select distinct id collate "C" as id
    from (
      select value as id
      from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
      union
      select w.id
      from "durably_runs" as r
      cross join lateral (
        select r.parent_run_id as id
        where r.parent_run_id is not null
        union all
        select value as id
        from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
      ) as w
      where r.id in (
        select value
        from json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
      )
      union
      select r.id
      from json_array_elements(cast(cast(cast($3 as text) as text) as json)) as k
      join "durably_runs" as r on r.tenant = cast(k.value ->> 0 as text)
      and r.job_name = cast(k.value ->> 1 as text)
      and r.idempotency_key = cast(k.value ->> 2 as text)
    ) as given
    order by 1
  ) as wanted
  cross join lateral (
    select "r"."id", "r"."status", "r"."lease_epoch", "r"."claim_token", "r"."leader_epoch", "r"."commit_no", "r"."last_event_sequence", "r"."cancel_requested_at", "r"."parent_run_id", "r"."also_awaited_by"
    from "durably_runs" as r
    where r.id = wanted.id
    for update
  ) as r
)
select id
from locked;

update "durably_runs" as r
set status = cast($1 as text), version = r.version + 1, updated_at = {now}, lease_epoch = r.lease_epoch + 1, crash_count = cast($2 as bigint), claim_token = null, owner_id = null, lease_until = null, waiting_for = null, available_at = case when cast($3 as text) = 'pending' then case when cast($4 as double precision) = 0 then r.created_at else ({now} + cast($5 as double precision) * interval '1 millisecond') end else r.available_at end, concurrency_slot = case when cast($6 as text) = 'pending'
and r.hold_key_while_waiting = 1 then r.concurrency_slot end, finished_at = case when not (cast($7 as text) = 'pending') then {now} end, error = coalesce(cast($8 as text), r.error), error_detail = coalesce(cast(cast($9 as text) as json), r.error_detail), last_event_sequence = r.last_event_sequence + cast($10 as bigint)
where r.id = cast($11 as text)
and r.status = 'running'
and r.version = cast($12 as bigint)
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- cancel
-- as recover, 2

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id = cast($4 as text)
and (cast($5 as text) is null
  or r.tenant = cast($6 as text)
)
and r.status = 'running';

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($1 as bigint), cancel_requested_at = coalesce(r.cancel_requested_at, {now})
where r.id = cast($2 as text)
and (cast($3 as text) is null
  or r.tenant = cast($4 as text)
)
and r.status = 'running'
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

update "durably_runs" as parent
set "wakes" = "parent"."wakes" + 1, "version" = "parent"."version" + 1, "updated_at" = {now}, "available_at" = case when "parent"."status" = 'pending'
and ("parent"."waiting_for" ->> 'kind') = 'steps' then case when case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end is null
or case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end <= {now}
or "parent"."wakes" + 1 >= "parent"."wakes_wanted" then "parent"."created_at" else least(coalesce("parent"."available_at", case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end), case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end) end else "parent"."available_at" end
where parent.id in (
  select r.parent_run_id
  from "durably_runs" as r
  where r.id = cast($1 as text)
  and (cast($2 as text) is null
    or r.tenant = cast($3 as text)
  )
  and r.status in ('pending', 'assigned', 'orphaned')
  and (r.parent_run_id is not null
    or r.also_awaited_by is not null
  )
  union all
  select a.value
  from "durably_runs" as r
  cross join json_array_elements_text(cast(cast(r.also_awaited_by as text) as json)) as a
  where r.id = cast($4 as text)
  and (cast($5 as text) is null
    or r.tenant = cast($6 as text)
  )
  and r.status in ('pending', 'assigned', 'orphaned')
  and (r.parent_run_id is not null
    or r.also_awaited_by is not null
  )
)
and parent.finished_at is null
returning id;

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id = cast($4 as text)
and (cast($5 as text) is null
  or r.tenant = cast($6 as text)
)
and r.status in ('pending', 'assigned', 'orphaned');

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($1 as bigint), cancel_requested_at = coalesce(r.cancel_requested_at, {now}), status = 'cancelled', finished_at = {now}, waiting_for = null, concurrency_slot = null, owner_id = null, lease_until = null, output = null
where r.id = cast($2 as text)
and (cast($3 as text) is null
  or r.tenant = cast($4 as text)
)
and r.status in ('pending', 'assigned', 'orphaned')
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- retry
select {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels
from "durably_runs" as r
where r.id = cast($1 as text)
and (cast($2 as text) is null
  or r.tenant = cast($3 as text)
);

-- as recover, 2

delete from "durably_steps"
where run_id = cast($1 as text)
and status = 'waiting'
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($2 as text)
  and (cast($3 as text) is null
    or r.tenant = cast($4 as text)
  )
  and r.status in ('failed', 'timed_out', 'cancelled')
);

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id = cast($4 as text)
and (cast($5 as text) is null
  or r.tenant = cast($6 as text)
)
and r.status in ('failed', 'timed_out', 'cancelled');

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($1 as bigint), status = 'pending', attempt = r.attempt + 1, attempt_base = r.attempt, crash_count = 0, lease_epoch = r.lease_epoch + 1, claim_token = null, owner_id = null, lease_until = null, concurrency_slot = null, available_at = r.created_at, waiting_for = null, output = null, error = null, error_detail = null, cancel_requested_at = null, deadline_at = null, started_at = null, finished_at = null
where r.id = cast($2 as text)
and (cast($3 as text) is null
  or r.tenant = cast($4 as text)
)
and r.status in ('failed', 'timed_out', 'cancelled')
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- retry: by somebody
-- as retry, 1

-- as recover, 2

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), r.tenant, 'run', r.id, json_build_object('status', r.status, 'attempt', r.attempt, 'waitingFor', (r.waiting_for ->> 'kind'), 'cancelRequestedAt', to_char(r.cancel_requested_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
from "durably_runs" as r
where r.id = cast($4 as text)
and (cast($5 as text) is null
  or r.tenant = cast($6 as text)
)
and r.status in ('failed', 'timed_out', 'cancelled');

-- as retry, 3

-- as retry, 5

update "durably_audit"
set after = (
  select json_build_object('status', r.status, 'attempt', r.attempt, 'waitingFor', (r.waiting_for ->> 'kind'), 'cancelRequestedAt', to_char(r.cancel_requested_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
  from "durably_runs" as r
  where r.id = cast($1 as text)
)
where id = cast($2 as text);

-- park
-- as recover, 2

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id = cast($4 as text)
and (cast($5 as text) is null
  or r.tenant = cast($6 as text)
)
and r.status = 'pending';

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($1 as bigint), available_at = null, waiting_for = cast(cast($2 as text) as json)
where r.id = cast($3 as text)
and (cast($4 as text) is null
  or r.tenant = cast($5 as text)
)
and r.status = 'pending'
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- as retry, 1

-- unpark
-- as recover, 2

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id = cast($4 as text)
and (cast($5 as text) is null
  or r.tenant = cast($6 as text)
)
and r.status = 'pending'
and (r.waiting_for ->> 'kind') = 'unpark';

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($1 as bigint), available_at = r.created_at, waiting_for = null
where r.id = cast($2 as text)
and (cast($3 as text) is null
  or r.tenant = cast($4 as text)
)
and r.status = 'pending'
and (r.waiting_for ->> 'kind') = 'unpark'
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- as retry, 1

-- failParked
-- as recover, 2

update "durably_runs" as parent
set "wakes" = "parent"."wakes" + 1, "version" = "parent"."version" + 1, "updated_at" = {now}, "available_at" = case when "parent"."status" = 'pending'
and ("parent"."waiting_for" ->> 'kind') = 'steps' then case when case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end is null
or case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end <= {now}
or "parent"."wakes" + 1 >= "parent"."wakes_wanted" then "parent"."created_at" else least(coalesce("parent"."available_at", case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end), case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end) end else "parent"."available_at" end
where parent.id in (
  select r.parent_run_id
  from "durably_runs" as r
  where r.id = cast($1 as text)
  and (cast($2 as text) is null
    or r.tenant = cast($3 as text)
  )
  and r.status = 'pending'
  and (r.waiting_for ->> 'kind') = 'unpark'
  union all
  select a.value
  from "durably_runs" as r
  cross join json_array_elements_text(cast(cast(r.also_awaited_by as text) as json)) as a
  where r.id = cast($4 as text)
  and (cast($5 as text) is null
    or r.tenant = cast($6 as text)
  )
  and r.status = 'pending'
  and (r.waiting_for ->> 'kind') = 'unpark'
)
and parent.finished_at is null
returning id;

-- as unpark, 2

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($1 as bigint), status = 'failed', finished_at = {now}, waiting_for = null, concurrency_slot = null, owner_id = null, lease_until = null, error = cast($2 as text), error_detail = cast(cast($3 as text) as json)
where r.id = cast($4 as text)
and (cast($5 as text) is null
  or r.tenant = cast($6 as text)
)
and r.status = 'pending'
and (r.waiting_for ->> 'kind') = 'unpark'
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- as retry, 1

-- remove
-- as retry, 1

-- as recover, 2

delete from "durably_run_labels"
where exists (
  select 1
  from "durably_run_labels"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = cast($1 as text)
  and (cast($2 as text) is null
    or r.tenant = cast($3 as text)
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
)
returning name, value;

insert into "durably_archive_strays" (name, announced_at, is_given_up)
select r.log_ref, {now}, 1
from "durably_runs" as r
where r.log_ref is not null
and r.id = cast($1 as text)
and (cast($2 as text) is null
  or r.tenant = cast($3 as text)
)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
on conflict
do nothing;

delete from "durably_steps"
where exists (
  select 1
  from "durably_steps"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = cast($1 as text)
  and (cast($2 as text) is null
    or r.tenant = cast($3 as text)
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
);

delete from "durably_logs"
where exists (
  select 1
  from "durably_logs"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = cast($1 as text)
  and (cast($2 as text) is null
    or r.tenant = cast($3 as text)
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
);

delete from "durably_run_events"
where exists (
  select 1
  from "durably_run_events"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = cast($1 as text)
  and (cast($2 as text) is null
    or r.tenant = cast($3 as text)
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
);

delete from "durably_signals"
where exists (
  select 1
  from "durably_signals"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = cast($1 as text)
  and (cast($2 as text) is null
    or r.tenant = cast($3 as text)
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
);

delete from "durably_debounced_runs"
where exists (
  select 1
  from "durably_debounced_runs"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = cast($1 as text)
  and (cast($2 as text) is null
    or r.tenant = cast($3 as text)
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
);

delete from "durably_runs" as r
where r.id = cast($1 as text)
and (cast($2 as text) is null
  or r.tenant = cast($3 as text)
)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- purge
-- as retry, 1

with page as materialized (
  select *
  from (
    select *
    from (
      select r.finished_at, r.id, r.version, r.parent_run_id, r.also_awaited_by, r.last_event_sequence, r.current_step_index
      from "durably_runs" as r
      where r.finished_at is not null
      and r.status = 'failed'
      order by r.finished_at asc, r.id asc
      limit $1
    ) as walk
  ) as ends
  order by ends.finished_at asc, ends.id asc
  limit $2
)
select r.id, r.version, r.last_event_sequence + r.current_step_index as weight, to_char(r.finished_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as finished_at, not exists (
  select 1
  from "durably_runs" as parent
  where parent.id = any(array(
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
    )
  )
  and parent.finished_at is null
) as is_unneeded
from page as r
order by r.finished_at, r.id;

-- as recover, 2

delete from "durably_run_labels"
where exists (
  select 1
  from "durably_run_labels"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = any(array(
      select cast(seen.value ->> 0 as text)
      from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as seen
    )
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id = any(array(
        select r.parent_run_id as id
        where r.parent_run_id is not null
        union all
        select value as id
        from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
      )
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) = any(array(
      select cast(seen.value ->> 0 as text) || '/' || cast(seen.value ->> 1 as bigint)
      from json_array_elements(cast(cast(cast($2 as text) as text) as json)) as seen
    )
  )
)
returning name, value;

insert into "durably_archive_strays" (name, announced_at, is_given_up)
select r.log_ref, {now}, 1
from "durably_runs" as r
where r.log_ref is not null
and r.id = any(array(
    select cast(seen.value ->> 0 as text)
    from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as seen
  )
)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and not exists (
  select 1
  from "durably_runs" as parent
  where parent.id = any(array(
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
    )
  )
  and parent.finished_at is null
)
and (r.id || '/' || r.version) = any(array(
    select cast(seen.value ->> 0 as text) || '/' || cast(seen.value ->> 1 as bigint)
    from json_array_elements(cast(cast(cast($2 as text) as text) as json)) as seen
  )
)
on conflict
do nothing;

delete from "durably_steps"
where exists (
  select 1
  from "durably_steps"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = any(array(
      select cast(seen.value ->> 0 as text)
      from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as seen
    )
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id = any(array(
        select r.parent_run_id as id
        where r.parent_run_id is not null
        union all
        select value as id
        from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
      )
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) = any(array(
      select cast(seen.value ->> 0 as text) || '/' || cast(seen.value ->> 1 as bigint)
      from json_array_elements(cast(cast(cast($2 as text) as text) as json)) as seen
    )
  )
);

delete from "durably_logs"
where exists (
  select 1
  from "durably_logs"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = any(array(
      select cast(seen.value ->> 0 as text)
      from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as seen
    )
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id = any(array(
        select r.parent_run_id as id
        where r.parent_run_id is not null
        union all
        select value as id
        from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
      )
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) = any(array(
      select cast(seen.value ->> 0 as text) || '/' || cast(seen.value ->> 1 as bigint)
      from json_array_elements(cast(cast(cast($2 as text) as text) as json)) as seen
    )
  )
);

delete from "durably_run_events"
where exists (
  select 1
  from "durably_run_events"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = any(array(
      select cast(seen.value ->> 0 as text)
      from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as seen
    )
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id = any(array(
        select r.parent_run_id as id
        where r.parent_run_id is not null
        union all
        select value as id
        from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
      )
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) = any(array(
      select cast(seen.value ->> 0 as text) || '/' || cast(seen.value ->> 1 as bigint)
      from json_array_elements(cast(cast(cast($2 as text) as text) as json)) as seen
    )
  )
);

delete from "durably_signals"
where exists (
  select 1
  from "durably_signals"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = any(array(
      select cast(seen.value ->> 0 as text)
      from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as seen
    )
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id = any(array(
        select r.parent_run_id as id
        where r.parent_run_id is not null
        union all
        select value as id
        from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
      )
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) = any(array(
      select cast(seen.value ->> 0 as text) || '/' || cast(seen.value ->> 1 as bigint)
      from json_array_elements(cast(cast(cast($2 as text) as text) as json)) as seen
    )
  )
);

delete from "durably_debounced_runs"
where exists (
  select 1
  from "durably_debounced_runs"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = any(array(
      select cast(seen.value ->> 0 as text)
      from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as seen
    )
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id = any(array(
        select r.parent_run_id as id
        where r.parent_run_id is not null
        union all
        select value as id
        from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
      )
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) = any(array(
      select cast(seen.value ->> 0 as text) || '/' || cast(seen.value ->> 1 as bigint)
      from json_array_elements(cast(cast(cast($2 as text) as text) as json)) as seen
    )
  )
);

delete from "durably_runs" as r
where r.id = any(array(
    select cast(seen.value ->> 0 as text)
    from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as seen
  )
)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and not exists (
  select 1
  from "durably_runs" as parent
  where parent.id = any(array(
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
    )
  )
  and parent.finished_at is null
)
and (r.id || '/' || r.version) = any(array(
    select cast(seen.value ->> 0 as text) || '/' || cast(seen.value ->> 1 as bigint)
    from json_array_elements(cast(cast(cast($2 as text) as text) as json)) as seen
  )
)
returning id;

-- purge: of a job, beyond those to keep
-- as retry, 1

with kept as materialized (
  select *
  from (
    select *
    from (
      select r.finished_at, r.id
      from "durably_runs" as r
      where r.finished_at is not null
      and r.job_name = $1
      and (r.status) >= ((
          select cast('failed' as text)
        )
      )
      and (r.status) <= ((
          select cast('failed' as text)
        )
      )
      order by r.status desc, r.finished_at desc, r.id desc
      limit $2
    ) as walk
    union all
    select *
    from (
      select r.finished_at, r.id
      from "durably_runs" as r
      where r.finished_at is not null
      and r.job_name = $3
      and (r.status) >= ((
          select cast('completed' as text)
        )
      )
      and (r.status) <= ((
          select cast('completed' as text)
        )
      )
      order by r.status desc, r.finished_at desc, r.id desc
      limit $4
    ) as walk
  ) as ends
  order by ends.finished_at desc, ends.id desc
  limit 1 offset $5
), page as materialized (
  select *
  from (
    select *
    from (
      select r.finished_at, r.id
      from "durably_runs" as r
      where r.finished_at is not null
      and r.job_name = $6
      and (r.status) >= ((
          select cast('failed' as text)
        )
      )
      and (r.status) <= ((
          select cast('failed' as text)
        )
      )
      and (r.status, r.finished_at) < ((
          select cast('failed' as text)
        ), ({now} + $7 * interval '1 millisecond')
      )
      and (r.status, r.finished_at, r.id) <= ((
          select cast('failed' as text)
        ), (
          select kept.finished_at
          from kept
        ), (
          select kept.id
          from kept
        )
      )
      order by r.status asc, r.finished_at asc, r.id asc
      limit $8
    ) as walk
    union all
    select *
    from (
      select r.finished_at, r.id
      from "durably_runs" as r
      where r.finished_at is not null
      and r.job_name = $9
      and (r.status) >= ((
          select cast('completed' as text)
        )
      )
      and (r.status) <= ((
          select cast('completed' as text)
        )
      )
      and (r.status, r.finished_at) < ((
          select cast('completed' as text)
        ), ({now} + $10 * interval '1 millisecond')
      )
      and (r.status, r.finished_at, r.id) <= ((
          select cast('completed' as text)
        ), (
          select kept.finished_at
          from kept
        ), (
          select kept.id
          from kept
        )
      )
      order by r.status asc, r.finished_at asc, r.id asc
      limit $11
    ) as walk
  ) as ends
  order by ends.finished_at asc, ends.id asc
  limit $12
)
select r.id, r.version, r.last_event_sequence + r.current_step_index as weight, to_char(r.finished_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as finished_at, not exists (
  select 1
  from "durably_runs" as parent
  where parent.id = any(array(
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
    )
  )
  and parent.finished_at is null
) as is_unneeded
from page
cross join lateral (
  select r.*
  from "durably_runs" as r
  where r.id = page.id offset 0
) as r
where r.id = page.id
order by r.finished_at, r.id;

-- as recover, 2

-- as purge, 4

-- as purge, 5

-- as purge, 6

-- as purge, 7

-- as purge, 8

-- as purge, 9

-- as purge, 10

-- as purge, 11

-- purge: by somebody
-- as retry, 1

-- as purge, 2

-- as recover, 2

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), cast($4 as text), 'runs', '', json_build_object('runs', cast(cast(json_agg(r.id)::text as text) as json))
from "durably_runs" as r
where r.id = any(array(
    select cast(seen.value ->> 0 as text)
    from json_array_elements(cast(cast(cast($5 as text) as text) as json)) as seen
  )
)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and not exists (
  select 1
  from "durably_runs" as parent
  where parent.id = any(array(
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_array_elements_text(cast(cast(r.also_awaited_by as text) as json))
    )
  )
  and parent.finished_at is null
)
and (r.id || '/' || r.version) = any(array(
    select cast(seen.value ->> 0 as text) || '/' || cast(seen.value ->> 1 as bigint)
    from json_array_elements(cast(cast(cast($6 as text) as text) as json)) as seen
  )
)
having count(*) > 0;

-- as purge, 4

-- as purge, 5

-- as purge, 6

-- as purge, 7

-- as purge, 8

-- as purge, 9

-- as purge, 10

-- as purge, 11

-- signal
-- as recover, 2

insert into "durably_signals" (run_id, position, name, payload, dedupe_key, created_at)
select r.id, r.wakes + 1, cast($1 as text), cast(cast($2 as text) as json), cast($3 as text), {now}
from "durably_runs" as r
where r.id = cast($4 as text)
and (cast($5 as text) is null
  or r.tenant = cast($6 as text)
)
and r.status in ('pending', 'assigned', 'running', 'orphaned')
on conflict
do nothing;

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id = cast($4 as text)
and exists (
  select 1
  from "durably_signals" as g
  where g.run_id = r.id
  and g.position = r.wakes + 1
);

update "durably_runs" as r
set "wakes" = "r"."wakes" + 1, "version" = "r"."version" + 1, "updated_at" = {now}, "available_at" = case when "r"."status" = 'pending'
and ("r"."waiting_for" ->> 'kind') = 'steps' then "r"."created_at" else "r"."available_at" end, "last_signal" = "r"."wakes" + 1, last_event_sequence = r.last_event_sequence + cast($1 as bigint)
where r.id = cast($2 as text)
and exists (
  select 1
  from "durably_signals" as g
  where g.run_id = r.id
  and g.position = r.wakes + 1
)
returning wakes;

-- signal: by somebody
-- as recover, 2

-- as signal, 2

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), r.tenant, 'run', r.id, json_build_object('status', r.status, 'attempt', r.attempt, 'waitingFor', (r.waiting_for ->> 'kind'), 'cancelRequestedAt', to_char(r.cancel_requested_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
from "durably_runs" as r
where r.id = cast($4 as text)
and exists (
  select 1
  from "durably_signals" as g
  where g.run_id = r.id
  and g.position = r.wakes + 1
);

update "durably_audit"
set after = json_build_object('signal', cast($1 as text))
where id = cast($2 as text);

-- as signal, 4

-- fork
insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select cast($1 as text), cast($2 as text), cast($3 as text), cast($4 as text), cast(cast($5 as text) as json), 'pending', cast($6 as text), cast($7 as text), cast($8 as bigint), cast($9 as bigint), cast($10 as bigint), case when cast($11 as timestamptz) is null then (coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = cast($12 as text)
    ), {now}
  ) + cast($13 as double precision) * interval '1 millisecond'
) when cast($14 as timestamptz) < coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($15 as text)
  ), {now}
) then coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($16 as text)
  ), {now}
) else cast($17 as timestamptz) end, cast($18 as double precision), cast($19 as text), cast($20 as text), cast($21 as timestamptz), cast($22 as text), cast($23 as bigint), coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($24 as text)
  ), {now}
), {now}
from "durably_runs" as r
where r.id = cast($25 as text)
on conflict
do nothing;

insert into "durably_steps" (id, run_id, lease_epoch, claim_token, "name", "index", "kind", "status", "attempt", "output", "wait_name", "due_at", "started_at", "completed_at")
select cast(c.value ->> 1 as text), n.id, 0, '', "s"."name", "s"."index", "s"."kind", "s"."status", "s"."attempt", "s"."output", "s"."wait_name", "s"."due_at", "s"."started_at", "s"."completed_at"
from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as c
join "durably_steps" as s on s.id = cast(c.value ->> 0 as text)
and s.run_id = cast($2 as text)
and s.status = 'completed'
join "durably_runs" as n on n.id = cast($3 as text)
where true
order by s."index", "s"."write_order"
on conflict
do nothing;

update "durably_runs"
set forked_from = cast($1 as text), current_step_index = cast($2 as bigint)
where id = cast($3 as text)
and forked_from is null;

select {columns of r: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_runs" as r
where r.id = cast($1 as text);

-- fork: by somebody
-- as fork, 1

-- as fork, 2

-- as fork, 3

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before, after)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), r.tenant, 'run', r.id, json_build_object('status', r.status, 'attempt', r.attempt, 'waitingFor', (r.waiting_for ->> 'kind'), 'cancelRequestedAt', to_char(r.cancel_requested_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')), json_build_object('run', cast($4 as text))
from "durably_runs" as r
where r.id = cast($5 as text);

-- as fork, 4

-- getRun
-- as retry, 1

-- getRuns
select {columns of r: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_runs" as r
order by r.created_at desc, r.id desc
limit $1;

-- getRuns: by status, job and tenant
select *
from (
  select 0 as way, to_char(r.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at, r.id as id
  from "durably_runs" as r
  where r.tenant = $1
  and (r.job_name, r.created_at) < ((
      select cast($2 as text)
    ), (
      select cast(cast($3 as timestamptz) as timestamptz)
    )
  )
  and (r.job_name, r.created_at) >= ((
      select cast($4 as text)
    ), (
      select cast(cast($5 as timestamptz) as timestamptz)
    )
  )
  order by r.job_name desc, r.created_at desc, r.id desc
  limit 1 offset 999
) as reached
union all
select *
from (
  select 1 as way, to_char(r.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at, r.id as id
  from "durably_runs" as r
  where r.tenant = $6
  and (r.status, r.created_at) < ((
      select cast('failed' as text)
    ), (
      select cast(cast($7 as timestamptz) as timestamptz)
    )
  )
  and (r.status, r.created_at) >= ((
      select cast('failed' as text)
    ), (
      select cast(cast($8 as timestamptz) as timestamptz)
    )
  )
  order by r.status desc, r.created_at desc, r.id desc
  limit 1 offset 999
) as reached
union all
select *
from (
  select 2 as way, to_char(r.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at, r.id as id
  from "durably_runs" as r
  where r.tenant <> ''
  and (r.tenant, r.created_at) < ((
      select cast($9 as text)
    ), (
      select cast(cast($10 as timestamptz) as timestamptz)
    )
  )
  and (r.tenant, r.created_at) >= ((
      select cast($11 as text)
    ), (
      select cast(cast($12 as timestamptz) as timestamptz)
    )
  )
  order by r.tenant desc, r.created_at desc, r.id desc
  limit 1 offset 999
) as reached;

select part.has_more, found.*
from (
  select case when exists (
    select 1
    from (
      select rank() over (
        order by r.job_name desc, r.created_at desc, r.id desc
      ) as place
      from "durably_runs" as r
      where r.tenant = $1
      and (r.job_name, r.created_at) < ((
          select cast($2 as text)
        ), (
          select cast(cast($3 as timestamptz) as timestamptz)
        )
      )
      and (r.job_name, r.created_at) >= ((
          select cast($4 as text)
        ), (
          select cast(cast($5 as timestamptz) as timestamptz)
        )
      )
    ) as entries
    where entries.place > 2000
  ) then 1 else 0 end as has_more
) as part
left join (
  select 1 as is_found, found.*
  from (
    select {columns of r: runs}, (
      select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
      from "durably_run_labels" as l
      where l.run_id = "r"."id"
    ) as labels
    from (
      select *
      from "durably_runs" as r
      where r.tenant = $6
      and (r.job_name, r.created_at) < ((
          select cast($7 as text)
        ), (
          select cast(cast($8 as timestamptz) as timestamptz)
        )
      )
      and (r.job_name, r.created_at) >= ((
          select cast($9 as text)
        ), (
          select cast(cast($10 as timestamptz) as timestamptz)
        )
      )
      order by r.job_name desc, r.created_at desc, r.id desc
      limit 2000
    ) as "r"
    where r.status = 'failed'
    order by r.job_name desc, r.created_at desc, r.id desc
    limit $11
  ) as found
) as found on true
order by found.created_at desc, found.id desc;

-- getRuns: by label
select {columns of r: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_run_labels" as q
cross join lateral (
  select r.*
  from "durably_runs" as r
  where r.id = q.run_id offset 0
) as r
where q.name = $1
and (q.value, q.created_at) < ((
    select cast($2 as text)
  ), (
    select cast(cast($3 as timestamptz) as timestamptz)
  )
)
and (q.value, q.created_at) >= ((
    select cast($4 as text)
  ), (
    select cast(cast($5 as timestamptz) as timestamptz)
  )
)
and r.id = q.run_id
order by q.value desc, q.created_at desc, q.run_id desc
limit $6;

-- getSteps
select {columns of s: steps}, case when s.due_at <= {now} then 1 else 0 end as is_due
from "durably_steps" as s
where s.run_id = cast($1 as text)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($2 as text)
  and (cast($3 as text) is null
    or r.tenant = cast($4 as text)
  )
)
order by s."index", "s"."write_order";

-- counts
select r.status, count(*) as runs
from "durably_runs" as r
group by r.status
union all
select (r.waiting_for ->> 'kind'), count(*) as runs
from "durably_runs" as r
where r.status = 'pending'
and (r.waiting_for ->> 'kind') in ('retry', 'unpark')
group by (r.waiting_for ->> 'kind');

-- nextDue
with recursive names (name) as (
  select (
    select min(r.job_name)
    from "durably_runs" as r
    where (r.status || '') = 'pending'
  )
  union all
  select (
    select min(r.job_name)
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.job_name > names.name
  )
  from names
  where names.name is not null
), due as (
  select names.name, (
    select r.available_at
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.available_at is not null
    and r.job_name = names.name
    order by r.available_at
    limit 1
  ) as run_at
  from names
  where names.name is not null
)
select to_char({now} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now, to_char((
    select min(due.run_at)
    from due
    where due.name in (
      select value
      from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
    )
  ) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
) as run_at, (
  select json_agg(due.name)::text
  from due
  where due.run_at <= {now}
  and due.name not in (
    select value
    from json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
  )
) as unknown_jobs, to_char((
    select min(r.lease_until)
    from "durably_runs" as r
    where r.status = 'running'
  ) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
) as lease_until;

-- getEvents
select {columns of e: run_events}
from "durably_run_events" as e
where e.run_id = cast($1 as text)
and e.seq > cast($2 as bigint)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($3 as text)
  and (cast($4 as text) is null
    or r.tenant = cast($5 as text)
  )
)
order by e.seq
limit cast($6 as bigint);

-- tail
select r.id, r.status, r.last_event_sequence, {columns of e: run_events}
from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as c
cross join lateral (
  select r.*
  from "durably_runs" as r
  where r.id = cast(c.value ->> 0 as text) offset 0
) as r
left join lateral (
  select e.*
  from "durably_run_events" as e
  where e.run_id = r.id
  and e.seq > cast(c.value ->> 1 as bigint)
  and e.seq <= cast(c.value ->> 2 as bigint) offset 0
) as e on true
where r.id = cast(c.value ->> 0 as text)
order by r.id, e.seq;

-- tail: of much
select r.id, r.last_event_sequence
from json_array_elements(cast(cast(cast($1 as text) as text) as json)) as c
join "durably_runs" as r on r.id = cast(c.value ->> 0 as text);

-- as tail, 1

-- getLogs
select {columns of l: logs}, "l"."write_order" as place
from "durably_logs" as l
where l.run_id = cast($1 as text)
and "l"."write_order" > cast($2 as bigint)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($3 as text)
  and (cast($4 as text) is null
    or r.tenant = cast($5 as text)
  )
)
order by "l"."write_order"
limit cast($6 as bigint);

-- getLogs: after one
select {columns of l: logs}, "l"."write_order" as place
from "durably_logs" as l
where l.run_id = cast($1 as text)
and "l"."write_order" > (
  select "a"."write_order"
  from "durably_logs" as a
  where a.id = cast($2 as text)
)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($3 as text)
  and (cast($4 as text) is null
    or r.tenant = cast($5 as text)
  )
)
order by "l"."write_order"
limit cast($6 as bigint);

-- findLogs
select {columns of l: logs}
from "durably_logs" as l
where l.id in (
  select value
  from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
);

-- getUnread
select {columns of g: signals}
from "durably_signals" as g
where g.run_id = cast($1 as text)
and g.consumed_at is null
order by g.position;

-- limits: load
-- as claim: under limits, 3

-- limits: pause
insert into "durably_paused_jobs" (job_name, paused_at)
values (cast($1 as text), {now})
on conflict
do nothing;

-- limits: pause by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), '', 'job', cast($4 as text), json_build_object('paused', exists (
    select 1
    from "durably_paused_jobs" as j
    where j.job_name = cast($5 as text)
  )
);

-- as limits: pause, 1

update "durably_audit"
set after = json_build_object('paused', exists (
    select 1
    from "durably_paused_jobs" as j
    where j.job_name = cast($1 as text)
  )
)
where id = cast($2 as text);

-- limits: resume
delete from "durably_paused_jobs"
where job_name = cast($1 as text);

-- limits: paused
select job_name
from "durably_paused_jobs"
order by job_name;

-- debounce: enqueue
insert into "durably_debounced_runs" as d (tenant, job_name, key, run_id)
values (cast($1 as text), cast($2 as text), cast($3 as text), cast($4 as text))
on conflict (tenant, job_name, key)
do update
set run_id = d.run_id;

update "durably_runs" as r
set payload = cast(cast($1 as text) as json), version = r.version + 1, updated_at = {now}, available_at = case when cast($2 as double precision) is null then ({now} + cast($3 as double precision) * interval '1 millisecond') else least(({now} + cast($4 as double precision) * interval '1 millisecond'), (r.created_at + cast($5 as double precision) * interval '1 millisecond')) end
where r.id = (
  select d.run_id
  from "durably_debounced_runs" as d
  where d.tenant = cast($6 as text)
  and d.job_name = cast($7 as text)
  and d.key = cast($8 as text)
)
and r.status = 'pending'
and r.attempt = 1
and r.started_at is null
and r.waiting_for is null
and (r.id = cast($9 as text)
  or not exists (
    select 1
    from "durably_runs" as own
    where own.id = cast($10 as text)
  )
);

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select cast($1 as text), cast($2 as text), cast($3 as text), cast($4 as text), cast(cast($5 as text) as json), 'pending', cast($6 as text), cast($7 as text), cast($8 as bigint), cast($9 as bigint), cast($10 as bigint), case when cast($11 as timestamptz) is null then (coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = cast($12 as text)
    ), {now}
  ) + cast($13 as double precision) * interval '1 millisecond'
) when cast($14 as timestamptz) < coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($15 as text)
  ), {now}
) then coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($16 as text)
  ), {now}
) else cast($17 as timestamptz) end, cast($18 as double precision), cast($19 as text), cast($20 as text), cast($21 as timestamptz), cast($22 as text), cast($23 as bigint), coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($24 as text)
  ), {now}
), {now}
where not exists (
  select 1
  from "durably_debounced_runs" as d
  join "durably_runs" as r on r.id = d.run_id
  where d.tenant = cast($25 as text)
  and d.job_name = cast($26 as text)
  and d.key = cast($27 as text)
  and r.status = 'pending'
  and r.attempt = 1
  and r.started_at is null
  and r.waiting_for is null
)
on conflict
do nothing;

update "durably_debounced_runs" as d
set run_id = cast($1 as text)
where d.tenant = cast($2 as text)
and d.job_name = cast($3 as text)
and d.key = cast($4 as text)
and exists (
  select 1
  from "durably_runs" as own
  where own.id = cast($5 as text)
)
and not exists (
  select 1
  from "durably_runs" as r
  where r.id = d.run_id
  and r.status = 'pending'
  and r.attempt = 1
  and r.started_at is null
  and r.waiting_for is null
);

select {columns of r: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_runs" as r
where r.id = cast($1 as text)
or r.id = (
  select d.run_id
  from "durably_debounced_runs" as d
  where d.tenant = cast($2 as text)
  and d.job_name = cast($3 as text)
  and d.key = cast($4 as text)
);

-- debounce: join
-- as debounce: enqueue, 1

select 1
from "durably_runs" as r
where r.id = (
  select d.run_id
  from "durably_debounced_runs" as d
  where d.tenant = cast($1 as text)
  and d.job_name = cast($2 as text)
  and d.key = cast($3 as text)
)
for update;

update "durably_debounced_runs" as d
set run_id = cast($1 as text)
where d.tenant = cast($2 as text)
and d.job_name = cast($3 as text)
and d.key = cast($4 as text)
and not exists (
  select 1
  from "durably_runs" as own
  where own.id = cast($5 as text)
)
and not exists (
  select j.run_id
  from "durably_debounced_runs" as j
  where j.tenant = cast($6 as text)
  and j.job_name = ''
  and j.key = cast($7 as text)
)
and not exists (
  select 1
  from "durably_runs" as r
  where r.id = d.run_id
  and r.status = 'pending'
  and r.attempt = 1
  and r.started_at is null
  and r.waiting_for is null
  and (case when substr(r.payload::text, 1, 1) = '[' then json_array_length(r.payload) end) + json_array_length(cast(cast($8 as text) as json)) <= cast($9 as bigint)
  and octet_length((substr(r.payload::text, 1, length(r.payload::text) - 1) || ',' || substr(cast(cast($10 as text) as json)::text, 2))) <= cast($11 as bigint)
);

update "durably_runs" as r
set payload = cast(cast((substr(r.payload::text, 1, length(r.payload::text) - 1) || ',' || substr(cast(cast($1 as text) as json)::text, 2)) as text) as json), version = r.version + 1, updated_at = {now}, available_at = case when (case when substr(r.payload::text, 1, 1) = '[' then json_array_length(r.payload) end) + json_array_length(cast(cast($2 as text) as json)) >= cast($3 as bigint) then least({now}, r.available_at) else r.available_at end
where r.id = (
  select d.run_id
  from "durably_debounced_runs" as d
  where d.tenant = cast($4 as text)
  and d.job_name = cast($5 as text)
  and d.key = cast($6 as text)
)
and not exists (
  select 1
  from "durably_runs" as own
  where own.id = cast($7 as text)
)
and not exists (
  select j.run_id
  from "durably_debounced_runs" as j
  where j.tenant = cast($8 as text)
  and j.job_name = ''
  and j.key = cast($9 as text)
);

insert into "durably_debounced_runs" (tenant, job_name, key, run_id)
select d.tenant, '', cast($1 as text), d.run_id
from "durably_debounced_runs" as d
where d.tenant = cast($2 as text)
and d.job_name = cast($3 as text)
and d.key = cast($4 as text)
and d.run_id <> cast($5 as text)
and not exists (
  select 1
  from "durably_runs" as own
  where own.id = cast($6 as text)
)
and not exists (
  select j.run_id
  from "durably_debounced_runs" as j
  where j.tenant = cast($7 as text)
  and j.job_name = ''
  and j.key = cast($8 as text)
)
on conflict
do nothing;

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select cast($1 as text), cast($2 as text), cast($3 as text), cast($4 as text), cast(cast($5 as text) as json), 'pending', cast($6 as text), cast($7 as text), cast($8 as bigint), cast($9 as bigint), cast($10 as bigint), case when cast($11 as timestamptz) is null then (coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = cast($12 as text)
    ), {now}
  ) + cast($13 as double precision) * interval '1 millisecond'
) when cast($14 as timestamptz) < coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($15 as text)
  ), {now}
) then coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($16 as text)
  ), {now}
) else cast($17 as timestamptz) end, cast($18 as double precision), cast($19 as text), cast($20 as text), cast($21 as timestamptz), cast($22 as text), cast($23 as bigint), coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = cast($24 as text)
  ), {now}
), {now}
where not exists (
  select j.run_id
  from "durably_debounced_runs" as j
  where j.tenant = cast($25 as text)
  and j.job_name = ''
  and j.key = cast($26 as text)
)
on conflict
do nothing;

select {columns of r: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_runs" as r
where r.id = coalesce((
    select j.run_id
    from "durably_debounced_runs" as j
    where j.tenant = cast($1 as text)
    and j.job_name = ''
    and j.key = cast($2 as text)
  ), cast($3 as text)
);

-- archiving: findLogged
with page as materialized (
  select r.id, r.version, r.finished_at
  from "durably_runs" as r
  where r.finished_at is not null
  and r.finished_at < ({now} + $1 * interval '1 millisecond')
  order by r.finished_at, r.id
  limit $2
)
select r.id, r.version, to_char(r.finished_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as finished_at, coalesce((
    select 1
    from "durably_logs" as l
    where l.run_id = r.id
    limit 1
  ), 0
) as has_logs
from page as r
order by r.finished_at, r.id;

-- archiving: announce
insert into "durably_archive_strays" (name, announced_at)
values (cast($1 as text), {now})
on conflict
do nothing;

-- archiving: refer
-- as retry, 1

-- as recover, 2

update "durably_archive_strays"
set announced_at = announced_at
where name = cast($1 as text);

insert into "durably_archive_strays" (name, announced_at, is_given_up)
select r.log_ref, {now}, 1
from "durably_runs" as r
where r.log_ref is not null
and r.id = cast($1 as text)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and r.version = cast($2 as bigint)
and exists (
  select 1
  from "durably_archive_strays" as s
  where s.name = cast($3 as text)
  and s.is_given_up = 0
)
on conflict
do nothing;

update "durably_runs" as r
set log_ref = cast($1 as text), version = r.version + 1, updated_at = {now}
where r.id = cast($2 as text)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and r.version = cast($3 as bigint)
and exists (
  select 1
  from "durably_archive_strays" as s
  where s.name = cast($4 as text)
  and s.is_given_up = 0
)
returning id;

delete from "durably_archive_strays"
where name = cast($1 as text)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($2 as text)
  and r.log_ref = cast($3 as text)
);

-- archiving: getUnarchived
select {columns of l: logs}, "l"."write_order" as place
from "durably_logs" as l
where l.run_id = cast($1 as text)
and "l"."write_order" > coalesce((
    select "a"."write_order"
    from "durably_logs" as a
    where a.id = cast($2 as text)
  ), 0
)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($3 as text)
  and (cast($4 as text) is null
    or r.tenant = cast($5 as text)
  )
)
order by "l"."write_order"
limit cast($6 as bigint);

-- archiving: removeArchived
delete from "durably_logs"
where id = any(array(
    select l.id
    from "durably_logs" as l
    where l.run_id = cast($1 as text)
    and "l"."write_order" <= (
      select "a"."write_order"
      from "durably_logs" as a
      where a.id = cast($2 as text)
    )
    order by "l"."write_order"
    limit cast($3 as bigint)
  )
)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($4 as text)
  and r.log_ref = cast($5 as text)
);

select 1
from "durably_logs" as l
where l.id = cast($1 as text)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = cast($2 as text)
  and r.log_ref = cast($3 as text)
);

-- archiving: giveUp
update "durably_archive_strays"
set is_given_up = 1
where is_given_up = 0
and announced_at <= ({now} + (- cast($1 as double precision)) * interval '1 millisecond');

select name
from "durably_archive_strays"
where is_given_up = 1
order by name
limit cast($1 as bigint);

-- archiving: forget
delete from "durably_archive_strays"
where name in (
  select value
  from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
);

-- audit: list
select to_char("m"."at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as first, "m"."id" as second
from "durably_audit" as m
where ("m"."at", "m"."id") < (cast($1 as timestamptz), cast($2 as text))
order by "m"."at" desc, "m"."id" desc
limit 1 offset 999;

select {columns of m: audit}
from (
  select m.*
  from "durably_audit" as m
  where ("m"."at", "m"."id") < (cast($1 as timestamptz), cast($2 as text))
  order by "m"."at" desc, "m"."id" desc
  limit 10000
) as m
where "m"."actor" = $3
order by "m"."at" desc, "m"."id" desc
limit $4;

-- audit: purge
delete from "durably_audit"
where id = any(array(
    select a.id
    from "durably_audit" as a
    where a.at < ({now} + (- cast($1 as double precision)) * interval '1 millisecond')
    order by a.at, a.id
    limit cast($2 as bigint)
  )
)
returning id;

-- statistics: ends
select {columns of statistics_place}
from "durably_statistics_place"
where id = 1;

select r.id, r.tenant, r.job_name, r.status, r.attempt_base, to_char("r"."available_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "available_at", to_char("r"."started_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "started_at", to_char("r"."finished_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "finished_at"
from "durably_runs" as r
where r.finished_at is not null
and r.finished_at is not null
and r.finished_at <= ({now} + cast($1 as double precision) * interval '1 millisecond')
order by r.finished_at, r.id
limit cast($2 as bigint);

-- statistics: fold
select {columns of s: statistics}
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "tenantScope" text, "jobScope" text, "hour" timestamptz)
join "durably_statistics" as s on s.tenant_scope = t."tenantScope"
and s.job_scope = t."jobScope"
and s.hour = t.hour;

insert into "durably_statistics_place" as s (id, finished_at, run_id, token)
values (1, cast($1 as timestamptz), cast($2 as text), cast($3 as text))
on conflict (id)
do update
set finished_at = excluded.finished_at, run_id = excluded.run_id, token = excluded.token
where s.finished_at = cast($4 as timestamptz)
and s.run_id = cast($5 as text)
returning id;

insert into "durably_statistics" ("tenant_scope", "job_scope", "hour", "started", "completed", "failed", "timed_out", "cancelled", "durations", "waits")
select "t"."tenantScope", "t"."jobScope", "t"."hour", "t"."started", "t"."completed", "t"."failed", "t"."timedOut", "t"."cancelled", cast(cast("t"."durations" as text) as json), cast(cast("t"."waits" as text) as json)
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "tenantScope" text, "jobScope" text, "hour" timestamptz, "started" bigint, "completed" bigint, "failed" bigint, "timedOut" bigint, "cancelled" bigint, "durations" text, "waits" text)
where exists (
  select 1
  from "durably_statistics_place" as s
  where s.id = 1
  and s.token = cast($2 as text)
)
on conflict (tenant_scope, job_scope, hour)
do update
set "started" = "excluded"."started", "completed" = "excluded"."completed", "failed" = "excluded"."failed", "timed_out" = "excluded"."timed_out", "cancelled" = "excluded"."cancelled", "durations" = "excluded"."durations", "waits" = "excluded"."waits";

-- statistics: hours
-- as statistics: ends, 1

select {columns of statistics}
from "durably_statistics"
where tenant_scope = cast($1 as text)
and job_scope = cast($2 as text)
and hour >= cast($3 as timestamptz)
and hour < cast($4 as timestamptz)
order by hour;

-- statistics: forget
delete from "durably_statistics"
where hour < cast($1 as timestamptz);

-- settings: get
select {columns of settings}
from "durably_settings";

-- settings: set by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), '', 'settings', '', cast(cast((
      select coalesce(json_object_agg(name, value)::text, '{}')
      from "durably_settings"
      where name in (
        select value
        from json_array_elements_text(cast(cast(cast($4 as text) as text) as json))
      )
    ) as text
  ) as json
);

delete from "durably_settings"
where name in (
  select value
  from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
);

insert into "durably_settings" (name, value, updated_at)
select "t"."name", cast(cast("t"."value" as text) as json), {now}
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "name" text, "value" text)
where true
on conflict (name)
do update
set value = excluded.value, updated_at = excluded.updated_at;

update "durably_audit"
set after = cast(cast((
      select coalesce(json_object_agg(name, value)::text, '{}')
      from "durably_settings"
      where name in (
        select value
        from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
      )
    ) as text
  ) as json
)
where id = cast($2 as text);

-- as settings: get, 1

-- cluster: getLead
select {columns of l: leaders}, case when l.lead_until <= {now} then 1 else 0 end as is_over
from "durably_leaders" as l
where l.name = cast($1 as text);

-- cluster: lead
insert into "durably_leaders" as l (name, worker_id, epoch, lead_until)
values (cast($1 as text), cast($2 as text), 1, ({now} + cast($3 as double precision) * interval '1 millisecond'))
on conflict (name)
do update
set worker_id = excluded.worker_id, lead_until = excluded.lead_until, epoch = l.epoch + case when l.worker_id = cast($4 as text)
and l.lead_until > {now} then 0 else 1 end
where l.worker_id = cast($5 as text)
or l.lead_until <= {now}
returning epoch;

-- schedules: create
insert into "durably_schedules" ("id", "tenant", "name", "source", "job_name", "payload", "definition", "overlap", "fired_until", "due_at", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."name", "t"."source", "t"."jobName", cast(cast("t"."payload" as text) as json), cast(cast("t"."definition" as text) as json), "t"."overlap", {now}, {now}, {now}, {now}
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "name" text, "source" text, "jobName" text, "payload" text, "definition" text, "overlap" text)
where true
on conflict
do nothing;

select {columns of s: schedules}
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "tenant" text, "name" text)
join "durably_schedules" as s on s.tenant = t.tenant
and s.name = t.name;

-- schedules: change
update "durably_schedules"
set "paused_because" = cast($1 as text), "fired_until" = {now}, "next_at" = null, "ended_at" = null, "due_at" = case when 1 = 0 then null else {now} end, "version" = version + 1, "updated_at" = {now}
where tenant = cast($2 as text)
and name = cast($3 as text)
returning {columns of schedules};

-- schedules: get
select {columns of s: schedules}, case when s.overlap = 'allow' then null else (
  select json_agg(r.id || ' ' || coalesce(to_char(r.scheduled_for at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), ''))::text
  from "durably_runs" as r
  where r.schedule_id = s.id
  and r.schedule_id is not null
  and r.finished_at is null
) end as open_runs
from "durably_schedules" as s
where s.tenant = cast($1 as text)
and s.name = cast($2 as text);

-- schedules: list
select {columns of m: schedules}
from "durably_schedules" as m
where tenant = cast($1 as text)
order by "m"."tenant" asc, "m"."name" asc
limit $2;

-- schedules: list, a page of a tenant with labels
select "m"."tenant" as first, "m"."name" as second
from "durably_schedules" as m
where tenant = cast($1 as text)
and ("m"."name") > (cast($2 as text))
order by "m"."tenant" asc, "m"."name" asc
limit 1 offset 999;

select {columns of m: schedules}
from (
  select m.*
  from "durably_schedules" as m
  where tenant = cast($1 as text)
  and ("m"."name") > (cast($2 as text))
  order by "m"."tenant" asc, "m"."name" asc
  limit 10000
) as m
where (definition #>> array['run', 'labels', cast(cast($3 as text) as text)]) = cast($4 as text)
order by "m"."tenant" asc, "m"."name" asc
limit $5;

-- schedules: list, with labels
select "m"."tenant" as first, "m"."name" as second
from "durably_schedules" as m
order by "m"."tenant" asc, "m"."name" asc
limit 1 offset 999;

select {columns of m: schedules}
from (
  select m.*
  from "durably_schedules" as m
  order by "m"."tenant" asc, "m"."name" asc
  limit 10000
) as m
where (definition #>> array['run', 'labels', cast(cast($1 as text) as text)]) = cast($2 as text)
and paused_because is null
and ended_at is not null
order by "m"."tenant" asc, "m"."name" asc;

-- schedules: due
select to_char({now} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now, (
  select to_char(min(s.due_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  from "durably_schedules" as s
  where s.due_at <= {now}
) as due_at, (
  select to_char(min(s.due_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  from "durably_schedules" as s
  where s.due_at > {now}
) as next_at;

select {columns of s: schedules}, case when s.overlap = 'allow' then null else (
  select json_agg(r.id || ' ' || coalesce(to_char(r.scheduled_for at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), ''))::text
  from "durably_runs" as r
  where r.schedule_id = s.id
  and r.schedule_id is not null
  and r.finished_at is null
) end as open_runs, to_char({now} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now
from "durably_schedules" as s
where s.due_at <= {now}
order by s.due_at, s.id
limit cast($1 as bigint);

-- schedules: fire
select 1
from "durably_leaders" as l
where l.name = cast($1 as text)
and l.worker_id = cast($2 as text)
and l.epoch = cast($3 as bigint)
for share;

update "durably_schedules" as s
set "version" = s.version + 1, "fired_until" = "t"."firedUntil", "next_at" = "t"."nextAt", "due_at" = "t"."nextAt", "ended_at" = case when "t"."nextAt" is null then {now} end, "fired" = s.fired + "t"."fired", "missed" = s.missed + "t"."missed", "fire_token" = cast($1 as text), "updated_at" = {now}
from json_to_recordset(cast(cast(cast($2 as text) as text) as json)) as t (n integer, "scheduleId" text, "version" bigint, "firedUntil" timestamptz, "nextAt" timestamptz, "fired" bigint, "missed" bigint)
where s.id = "t"."scheduleId"
and s.version = "t"."version"
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($3 as text)
  and l.worker_id = cast($4 as text)
  and l.epoch = cast($5 as bigint)
)
returning id;

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", cast(cast("t"."payload" as text) as json), 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then ({now} + "t"."afterMs" * interval '1 millisecond') when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "jobName" text, "jobVersion" text, "payload" text, "idempotencyKey" text, "concurrencyKey" text, "concurrencyLimit" bigint, "holdKeyWhileWaiting" bigint, "priority" bigint, "startAt" timestamptz, "afterMs" double precision, "timeoutMs" double precision, "parentRunId" text, "scheduleId" text, "scheduledFor" timestamptz, "traceParent" text, "eventCount" bigint, "cause" text)
where (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = "t"."cause"
) = cast($2 as text)
order by t.n
on conflict
do nothing
returning id;

-- schedules: fire, and have a run end
-- as commit: all there is, 1

-- as schedules: fire, 1

-- as schedules: fire, 2

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id = any(array(
    select value
    from json_array_elements_text(cast(cast(cast($4 as text) as text) as json))
  )
)
and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
  select value
  from json_array_elements_text(cast(cast(cast($5 as text) as text) as json))
) then 1 end = 1
and (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = r.schedule_id
) = cast($6 as text)
and case when r.status = 'running' then 1 end = 1;

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($1 as bigint), cancel_requested_at = coalesce(r.cancel_requested_at, {now})
where r.id = any(array(
    select value
    from json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
  )
)
and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
  select value
  from json_array_elements_text(cast(cast(cast($3 as text) as text) as json))
) then 1 end = 1
and (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = r.schedule_id
) = cast($4 as text)
and case when r.status = 'running' then 1 end = 1
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

update "durably_runs" as parent
set "wakes" = "parent"."wakes" + 1, "version" = "parent"."version" + 1, "updated_at" = {now}, "available_at" = case when "parent"."status" = 'pending'
and ("parent"."waiting_for" ->> 'kind') = 'steps' then case when case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end is null
or case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end <= {now}
or "parent"."wakes" + 1 >= "parent"."wakes_wanted" then "parent"."created_at" else least(coalesce("parent"."available_at", case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end), case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end) end else "parent"."available_at" end
where parent.id in (
  select r.parent_run_id
  from "durably_runs" as r
  where r.id = any(array(
      select value
      from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
    )
  )
  and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
    select value
    from json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
  ) then 1 end = 1
  and (
    select s.fire_token
    from "durably_schedules" as s
    where s.id = r.schedule_id
  ) = cast($3 as text)
  and case when r.status in ('pending', 'assigned', 'orphaned') then 1 end = 1
  and (r.parent_run_id is not null
    or r.also_awaited_by is not null
  )
  union all
  select a.value
  from "durably_runs" as r
  cross join json_array_elements_text(cast(cast(r.also_awaited_by as text) as json)) as a
  where r.id = any(array(
      select value
      from json_array_elements_text(cast(cast(cast($4 as text) as text) as json))
    )
  )
  and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
    select value
    from json_array_elements_text(cast(cast(cast($5 as text) as text) as json))
  ) then 1 end = 1
  and (
    select s.fire_token
    from "durably_schedules" as s
    where s.id = r.schedule_id
  ) = cast($6 as text)
  and case when r.status in ('pending', 'assigned', 'orphaned') then 1 end = 1
  and (r.parent_run_id is not null
    or r.also_awaited_by is not null
  )
)
and parent.finished_at is null
returning id;

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id = any(array(
    select value
    from json_array_elements_text(cast(cast(cast($4 as text) as text) as json))
  )
)
and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
  select value
  from json_array_elements_text(cast(cast(cast($5 as text) as text) as json))
) then 1 end = 1
and (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = r.schedule_id
) = cast($6 as text)
and case when r.status in ('pending', 'assigned', 'orphaned') then 1 end = 1;

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($1 as bigint), cancel_requested_at = coalesce(r.cancel_requested_at, {now}), status = 'cancelled', finished_at = {now}, waiting_for = null, concurrency_slot = null, owner_id = null, lease_until = null, output = null
where r.id = any(array(
    select value
    from json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
  )
)
and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
  select value
  from json_array_elements_text(cast(cast(cast($3 as text) as text) as json))
) then 1 end = 1
and (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = r.schedule_id
) = cast($4 as text)
and case when r.status in ('pending', 'assigned', 'orphaned') then 1 end = 1
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- schedules: remove
delete from "durably_schedules"
where tenant = cast($1 as text)
and name = cast($2 as text)
returning id;

-- schedules: purge
-- as schedules: fire, 1

delete from "durably_schedules"
where id = any(array(
    select id
    from "durably_schedules"
    where ended_at <= ({now} + (- cast($1 as double precision)) * interval '1 millisecond')
    and source is null
    order by id
    limit cast($2 as bigint)
  )
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($3 as text)
  and l.worker_id = cast($4 as text)
  and l.epoch = cast($5 as bigint)
)
returning id;

-- schedules: create, by somebody
-- as schedules: create, 1

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before, after)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), s.tenant, 'schedule', s.name, null, json_build_object('jobName', s.job_name, 'definition', s.definition, 'overlap', s.overlap, 'pausedBecause', s.paused_because, 'version', s.version)
from "durably_schedules" as s
where s.id = $4;

-- as schedules: create, 2

-- schedules: change, by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), s.tenant, 'schedule', s.name, json_build_object('jobName', s.job_name, 'definition', s.definition, 'overlap', s.overlap, 'pausedBecause', s.paused_because, 'version', s.version)
from "durably_schedules" as s
where tenant = cast($4 as text)
and name = cast($5 as text)
for update;

update "durably_schedules"
set "due_at" = case when paused_because is not null then null else due_at end, "version" = version + 1, "updated_at" = {now}
where tenant = cast($1 as text)
and name = cast($2 as text)
returning {columns of schedules};

update "durably_audit"
set after = (
  select json_build_object('jobName', s.job_name, 'definition', s.definition, 'overlap', s.overlap, 'pausedBecause', s.paused_because, 'version', s.version)
  from "durably_schedules" as s
  where tenant = cast($1 as text)
  and name = cast($2 as text)
)
where id = $3;

-- schedules: start by hand
insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", cast(cast("t"."payload" as text) as json), 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then ({now} + "t"."afterMs" * interval '1 millisecond') when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "jobName" text, "jobVersion" text, "payload" text, "idempotencyKey" text, "concurrencyKey" text, "concurrencyLimit" bigint, "holdKeyWhileWaiting" bigint, "priority" bigint, "startAt" timestamptz, "afterMs" double precision, "timeoutMs" double precision, "parentRunId" text, "scheduleId" text, "scheduledFor" timestamptz, "traceParent" text, "eventCount" bigint, "cause" text)
where exists (
  select 1
  from "durably_schedules" as s
  where s.id = "t"."cause"
)
order by t.n
on conflict
do nothing
returning id;

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before, after)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), s.tenant, 'schedule', s.name, null, json_build_object('runs', cast(cast((
        select json_agg(r.id)::text
        from "durably_runs" as r
        where r.id = any(array(
            select value
            from json_array_elements_text(cast(cast($4 as text) as json))
          )
        )
      ) as text
    ) as json
  )
)
from "durably_schedules" as s
where s.id = $5
and exists (
  select 1
  from "durably_runs" as r
  where r.id = any(array(
      select value
      from json_array_elements_text(cast(cast($6 as text) as json))
    )
  )
);

-- schedules: remove, by somebody
-- as schedules: change, by somebody, 1

-- as schedules: remove, 1

-- as schedules: change, by somebody, 3

-- inbox: publish
insert into "durably_inbox" ("id", "tenant", "type", "payload", "dedupe_key", "available_at", "created_at")
select "t"."id", "t"."tenant", "t"."type", cast(cast("t"."payload" as text) as json), "t"."dedupeKey", case when "t"."startAt" is null then ({now} + "t"."afterMs" * interval '1 millisecond') when "t"."startAt" < {now} then {now} else "t"."startAt" end, {now}
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "type" text, "payload" text, "dedupeKey" text, "startAt" timestamptz, "afterMs" double precision)
where true
order by t.n
on conflict
do nothing;

select {columns of m: inbox}
from "durably_inbox" as m
where m.id = any(array(
    select t.id
    from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "dedupeKey" text)
    union
    select (
      select i.id
      from "durably_inbox" as i
      where i.tenant = t.tenant
      and i.dedupe_key = t."dedupeKey"
      and i.dedupe_key is not null
    )
    from json_to_recordset(cast(cast(cast($2 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "dedupeKey" text)
  )
);

-- inbox: subscribe
delete from "durably_subscriptions"
where job_name in (
  select value
  from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
);

insert into "durably_subscriptions" (job_name, type, definition)
select "t"."jobName", "t"."type", cast(cast("t"."definition" as text) as json)
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "jobName" text, "type" text, "definition" text)
where true
on conflict (type, job_name)
do update
set definition = excluded.definition;

-- inbox: waiting
select to_char({now} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now, (
  select to_char(min(m.available_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  from "durably_inbox" as m
  where m.processed_at is null
  and m.available_at <= {now}
) as due_at, (
  select to_char(min(m.available_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  from "durably_inbox" as m
  where m.processed_at is null
  and m.available_at > {now}
) as next_at;

select {columns of m: inbox}
from "durably_inbox" as m
where m.processed_at is null
and m.available_at <= {now}
order by m.available_at, m.id
limit cast($1 as bigint);

select {columns of w: subscriptions}
from "durably_subscriptions" as w
where w.type in (
  select value
  from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
)
order by w.job_name;

-- inbox: deliver
-- as schedules: fire, 1

update "durably_inbox" as m
set processed_at = {now}, wanted = "t"."wanted", deliver_token = cast($1 as text)
from json_to_recordset(cast(cast(cast($2 as text) as text) as json)) as t (n integer, "messageId" text, "round" bigint, "wanted" bigint)
where m.id = "t"."messageId"
and case when m.processed_at is null then m.round end = "t"."round"
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($3 as text)
  and l.worker_id = cast($4 as text)
  and l.epoch = cast($5 as bigint)
)
returning id;

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", cast(cast("t"."payload" as text) as json), 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then ({now} + "t"."afterMs" * interval '1 millisecond') when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "jobName" text, "jobVersion" text, "payload" text, "idempotencyKey" text, "concurrencyKey" text, "concurrencyLimit" bigint, "holdKeyWhileWaiting" bigint, "priority" bigint, "startAt" timestamptz, "afterMs" double precision, "timeoutMs" double precision, "parentRunId" text, "scheduleId" text, "scheduledFor" timestamptz, "traceParent" text, "eventCount" bigint, "cause" text)
where (
  select m.deliver_token
  from "durably_inbox" as m
  where m.id = "t"."cause"
) = cast($2 as text)
order by t.n
on conflict
do nothing
returning id;

insert into "durably_gathered" (id, job_name, tenant, key, mode, max, payload, due_at, created_at, place)
select "t"."id", "t"."jobName", m.tenant, "t"."key", "t"."mode", "t"."max", m.payload, ({now} + "t"."waitMs" * interval '1 millisecond'), {now}, t.n
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "messageId" text, "jobName" text, "key" text, "mode" text, "max" bigint, "waitMs" double precision)
join "durably_inbox" as m on m.id = t."messageId"
and m.deliver_token = cast($2 as text)
where true
on conflict
do nothing;

-- inbox: ripe
select to_char({now} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now, to_char(min(case when (r.due_at <= {now}
      or (r.mode = 'all'
        and r.members >= r.max
      )
    ) then null else r.due_at end
  ) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
) as next_at, coalesce(sum(case when (r.due_at <= {now}
      or (r.mode = 'all'
        and r.members >= r.max
      )
    ) then 1 else 0 end
  ), 0
) as ripe
from (
  select g.job_name, g.tenant, g.key, min(g.mode) as mode, min(g.max) as max, count(*) as members, case when min(g.mode) = 'all' then min(g.due_at) else max(g.due_at) end as due_at
  from "durably_gathered" as g
  group by g.job_name, g.tenant, g.key
) as r;

select {columns of g: gathered}
from "durably_gathered" as g
join (
  select *
  from (
    select g.job_name, g.tenant, g.key, min(g.mode) as mode, min(g.max) as max, count(*) as members, case when min(g.mode) = 'all' then min(g.due_at) else max(g.due_at) end as due_at
    from "durably_gathered" as g
    group by g.job_name, g.tenant, g.key
  ) as r
  where (r.due_at <= {now}
    or (r.mode = 'all'
      and r.members >= r.max
    )
  )
  order by r.due_at
  limit cast($1 as bigint)
) as r on r.job_name = g.job_name
and r.tenant = g.tenant
and r.key = g.key
order by g.created_at, g.place, g.id;

select {columns of w: subscriptions}
from "durably_subscriptions" as w
where w.job_name in (
  select value
  from json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
)
order by w.job_name, w.type;

-- inbox: release
-- as schedules: fire, 1

update "durably_gathered"
set release_token = cast($1 as text)
where id in (
  select value
  from json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($3 as text)
  and l.worker_id = cast($4 as text)
  and l.epoch = cast($5 as bigint)
)
returning id;

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", cast(cast("t"."payload" as text) as json), 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then ({now} + "t"."afterMs" * interval '1 millisecond') when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "tenant" text, "jobName" text, "jobVersion" text, "payload" text, "idempotencyKey" text, "concurrencyKey" text, "concurrencyLimit" bigint, "holdKeyWhileWaiting" bigint, "priority" bigint, "startAt" timestamptz, "afterMs" double precision, "timeoutMs" double precision, "parentRunId" text, "scheduleId" text, "scheduledFor" timestamptz, "traceParent" text, "eventCount" bigint, "cause" text)
where "t"."cause" in (
  select "t"."cause"
  from json_to_recordset(cast(cast(cast($2 as text) as text) as json)) as t (n integer, "id" text, "cause" text, "wanted" bigint)
  join "durably_gathered" as g on g.id = "t"."id"
  and g.release_token = cast($3 as text)
  group by "t"."cause"
  having count(*) = min("t"."wanted")
)
order by t.n
on conflict
do nothing
returning id;

delete from "durably_gathered"
where release_token = cast($1 as text)
and id in (
  select "t"."id"
  from json_to_recordset(cast(cast(cast($2 as text) as text) as json)) as t (n integer, "id" text, "cause" text, "wanted" bigint)
  where "t"."cause" in (
    select "t"."cause"
    from json_to_recordset(cast(cast(cast($3 as text) as text) as json)) as t (n integer, "id" text, "cause" text, "wanted" bigint)
    join "durably_gathered" as g on g.id = "t"."id"
    and g.release_token = cast($4 as text)
    group by "t"."cause"
    having count(*) = min("t"."wanted")
  )
);

-- inbox: list
select {columns of m: inbox}
from "durably_inbox" as m
order by "m"."created_at" asc, "m"."id" asc
limit $1;

-- inbox: counts
select to_char("m"."created_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as first, "m"."id" as second
from "durably_inbox" as m
order by "m"."created_at" asc, "m"."id" asc
limit 1 offset 999;

select coalesce(sum(case when processed_at is null then 1 else 0 end), 0) as "waiting", coalesce(sum(case when processed_at is not null then 1 else 0 end), 0) as "processed", coalesce(sum(case when (processed_at is not null
      and wanted = 0
    ) then 1 else 0 end
  ), 0
) as "unwanted"
from (
  select m.*
  from "durably_inbox" as m
  order by "m"."created_at" asc, "m"."id" asc
  limit 10000
) as m;

-- inbox: replay
select to_char("m"."created_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as first, "m"."id" as second
from "durably_inbox" as m
order by "m"."created_at" desc, "m"."id" desc
limit 1;

select to_char("m"."created_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as first, "m"."id" as second, m.id, m.round, case when processed_at is not null then 1 else 0 end as is_found
from "durably_inbox" as m
where ("m"."created_at", "m"."id") <= (cast($1 as timestamptz), cast($2 as text))
order by "m"."created_at" asc, "m"."id" asc
limit $3;

update "durably_inbox" as m
set processed_at = null, wanted = 0, round = m.round + 1
where m.id = any(array(
    select t.id
    from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "id" text, "round" bigint)
  )
)
and (m.id || '/' || m.round) = any(array(
    select t.id || '/' || t.round
    from json_to_recordset(cast(cast(cast($2 as text) as text) as json)) as t (n integer, "id" text, "round" bigint)
  )
)
returning id;

-- inbox: replay, by somebody
-- as inbox: replay, 1

select to_char("m"."created_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as first, "m"."id" as second, m.id, m.round, case when type = any(array(
    select json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
  )
)
and processed_at is not null then 1 else 0 end as is_found
from "durably_inbox" as m
where ("m"."created_at", "m"."id") <= (cast($2 as timestamptz), cast($3 as text))
order by "m"."created_at" asc, "m"."id" asc
limit $4;

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before, after)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), cast($4 as text), 'messages', '', null, json_build_object('messages', count(*), 'of', cast(cast($5 as text) as json))
from (
  select 1
  from "durably_inbox" as m
  where m.id = any(array(
      select t.id
      from json_to_recordset(cast(cast(cast($6 as text) as text) as json)) as t (n integer, "id" text, "round" bigint)
    )
  )
  and (m.id || '/' || m.round) = any(array(
      select t.id || '/' || t.round
      from json_to_recordset(cast(cast(cast($7 as text) as text) as json)) as t (n integer, "id" text, "round" bigint)
    )
  )
  for update
) as m
having count(*) > 0;

-- as inbox: replay, 3

-- inbox: purge
delete from "durably_inbox"
where id = any(array(
    select id
    from "durably_inbox"
    where processed_at <= ({now} + (- cast($1 as double precision)) * interval '1 millisecond')
    order by processed_at
    limit cast($2 as bigint)
  )
)
returning id;

-- inbox: purge, by the leader
-- as schedules: fire, 1

delete from "durably_inbox"
where id = any(array(
    select id
    from "durably_inbox"
    where processed_at <= ({now} + (- cast($1 as double precision)) * interval '1 millisecond')
    order by processed_at
    limit cast($2 as bigint)
  )
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($3 as text)
  and l.worker_id = cast($4 as text)
  and l.epoch = cast($5 as bigint)
)
returning id;

-- inbox: purge, by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), '', 'messages', '', json_build_object('messages', cast(cast(json_agg(m.id)::text as text) as json))
from (
  select id
  from "durably_inbox"
  where processed_at <= ({now} + (- cast($4 as double precision)) * interval '1 millisecond')
  order by processed_at
  limit cast($5 as bigint)
  for update
) as m
having count(*) > 0;

delete from "durably_inbox"
where id = any(array(
    select value
    from json_array_elements_text(cast(cast(((
              select a.before
              from "durably_audit" as a
              where a.id = cast($1 as text)
            ) ->> 'messages'
          ) as text
        ) as json
      )
    )
  )
)
returning id;

-- inbox: forget
delete from "durably_subscriptions"
where job_name = cast($1 as text);

-- inbox: forget, by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select cast($1 as text), {now}, cast($2 as text), cast($3 as text), '', 'job', cast($4 as text), json_build_object('on', cast(cast(coalesce(json_object_agg(w.type, w.definition)::text, '{}') as text) as json))
from (
  select type, definition
  from "durably_subscriptions"
  where job_name = cast($5 as text)
  for update
) as w
having count(*) > 0;

-- as inbox: forget, 1

-- cluster: resign
update "durably_leaders" as l
set lead_until = {now}
where l.name = cast($1 as text)
and l.worker_id = cast($2 as text)
and l.epoch = cast($3 as bigint);

-- placement: beat
insert into "durably_workers" ("worker_id", "presence", "capacity", "placed_jobs", "labels", "code_version", "first_beat_at", "last_beat_at", "alive_until")
values (cast($1 as text), cast($2 as text), cast($3 as bigint), cast(cast(cast($4 as text) as text) as json), cast(cast(cast($5 as text) as text) as json), cast($6 as text), {now}, {now}, ({now} + cast($7 as double precision) * interval '1 millisecond'))
on conflict (worker_id)
do update
set "presence" = "excluded"."presence", "capacity" = "excluded"."capacity", "placed_jobs" = "excluded"."placed_jobs", "labels" = "excluded"."labels", "code_version" = "excluded"."code_version", "last_beat_at" = "excluded"."last_beat_at", "alive_until" = "excluded"."alive_until";

-- placement: noteJobs
insert into "durably_jobs" (name, version, code_version, options, last_seen_at)
select "t"."name", "t"."jobVersion", cast($1 as text), cast(cast("t"."options" as text) as json), {now}
from json_to_recordset(cast(cast(cast($2 as text) as text) as json)) as t (n integer, "name" text, "jobVersion" text, "options" text)
where true
on conflict (name, version, code_version)
do update
set options = excluded.options, last_seen_at = excluded.last_seen_at;

-- placement: getWorkers
select {columns of w: workers}, case when (presence <> 'detached'
  and alive_until > {now}
) then 1 else 0 end as is_alive, (
  select count(*)
  from "durably_runs" as r
  where r.status = 'running'
  and r.owner_id = worker_id
) as running, (
  select count(*)
  from "durably_runs" as r
  where (r.status || '') = 'assigned'
  and r.assigned_worker_id = worker_id
) as assigned, case when exists (
  select 1 as held
  where (
    select max(r.crash_count)
    from "durably_runs" as r
    where r.status = 'running'
    and r.owner_id = worker_id
  ) >= 2
  or (
    select max(r.crash_count)
    from "durably_runs" as r
    where (r.status || '') = 'assigned'
    and r.assigned_worker_id = worker_id
  ) >= 2
) then 1 else 0 end as holds_suspect
from "durably_workers" as w
order by w.worker_id;

-- placement: getJobs
select {columns of jobs}
from "durably_jobs"
order by name, version, code_version;

-- placement: waiting
with recursive walk (job_name, tenant, nth) as (
  select t."jobName", (
    select r.tenant
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.tenant <> ''
    and r.job_name = t."jobName"
    and r.tenant > t.tenant
    order by r.tenant
    limit 1
  ), 1
  from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "jobName" text, "tenant" text)
  union all
  select w.job_name, (
    select r.tenant
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.tenant <> ''
    and r.job_name = w.job_name
    and r.tenant > w.tenant
    order by r.tenant
    limit 1
  ), w.nth + 1
  from walk as w
  where w.tenant is not null
  and w.nth <= cast($2 as bigint)
)
select job_name, tenant, nth
from walk
where tenant is not null
order by job_name, nth;

with found as (
  select h.id
  from json_to_recordset(cast(cast(cast($1 as text) as text) as json)) as t (n integer, "jobName" text, "tenant" text)
  cross join lateral (
    select r.id
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.tenant <> ''
    and r.job_name = t."jobName"
    and r.tenant = t.tenant
    and r.available_at <= {now}
    and (r.concurrency_key is null
      or r.concurrency_slot is not null
      or (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "r"."tenant"
        and a.concurrency_key = "r"."concurrency_key"
        and a.concurrency_slot < "r"."concurrency_limit"
      ) < r.concurrency_limit
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and (r.crash_count < 2
      or r.job_name = any(array(
          select json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
        )
      )
    )
    order by r.priority desc, r.available_at, r.id
    limit cast($3 as bigint)
  ) as h
  union all
  select *
  from (
    select r.id
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.tenant = ''
    and r.concurrency_key is null
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($4 as text) as text) as json))
      )
    )
    and r.available_at <= {now}
    and (r.concurrency_key is null
      or r.concurrency_slot is not null
      or (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "r"."tenant"
        and a.concurrency_key = "r"."concurrency_key"
        and a.concurrency_slot < "r"."concurrency_limit"
      ) < r.concurrency_limit
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and (r.crash_count < 2
      or r.job_name = any(array(
          select json_array_elements_text(cast(cast(cast($5 as text) as text) as json))
        )
      )
    )
    order by r.priority desc, r.available_at, r.id
    limit cast($6 as bigint)
  ) as front
  union all
  select *
  from (
    select r.id
    from "durably_runs" as r
    where (r.status || '') = 'pending'
    and r.tenant = ''
    and r.concurrency_key is not null
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($7 as text) as text) as json))
      )
    )
    and r.available_at <= {now}
    and (r.concurrency_key is null
      or r.concurrency_slot is not null
      or (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "r"."tenant"
        and a.concurrency_key = "r"."concurrency_key"
        and a.concurrency_slot < "r"."concurrency_limit"
      ) < r.concurrency_limit
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and (r.crash_count < 2
      or r.job_name = any(array(
          select json_array_elements_text(cast(cast(cast($8 as text) as text) as json))
        )
      )
    )
    order by r.priority desc, r.available_at, r.id
    limit cast($9 as bigint)
  ) as front
  union all
  select *
  from (
    select r.id
    from "durably_runs" as r
    where r.status = 'orphaned'
    and r.job_name = any(array(
        select json_array_elements_text(cast(cast(cast($10 as text) as text) as json))
      )
    )
    and r.available_at <= {now}
    and (r.concurrency_key is null
      or r.concurrency_slot is not null
      or (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "r"."tenant"
        and a.concurrency_key = "r"."concurrency_key"
        and a.concurrency_slot < "r"."concurrency_limit"
      ) < r.concurrency_limit
    )
    and r.job_name <> all(array(
        select q.job_name
        from "durably_paused_jobs" as q
      )
    )
    and (r.crash_count < 2
      or r.job_name = any(array(
          select json_array_elements_text(cast(cast(cast($11 as text) as text) as json))
        )
      )
    )
    order by r.priority desc, r.available_at, r.id
    limit cast($12 as bigint)
  ) as lost
)
select r.id, r.version, r.job_name, r.tenant, r.priority, to_char(r.available_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as available_at, r.crash_count, r.concurrency_key, r.concurrency_slot, r.concurrency_limit - (
  select count(*)
  from "durably_runs" as a
  where a.concurrency_slot is not null
  and a.tenant = "r"."tenant"
  and a.concurrency_key = "r"."concurrency_key"
  and a.concurrency_slot < "r"."concurrency_limit"
) as room
from found
join "durably_runs" as r on r.id = found.id
order by r.priority desc, r.available_at, r.id;

select h.tenant, count(*) as held
from (
  select r.tenant
  from "durably_runs" as r
  where r.status = 'running'
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($1 as text) as text) as json))
    )
  )
  union all
  select r.tenant
  from "durably_runs" as r
  where (r.status || '') = 'assigned'
  and r.job_name = any(array(
      select json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
    )
  )
) as h
group by h.tenant;

-- placement: assign
-- as recover, 2

-- as schedules: fire, 1

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id = cast($4 as text)
and (r.status || '') in ('pending', 'orphaned')
and r.version = cast($5 as bigint)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($6 as text)
  and l.worker_id = cast($7 as text)
  and l.epoch = cast($8 as bigint)
)
and (r.concurrency_key is null
  or (r.concurrency_slot is not null
    or (
      select count(*)
      from "durably_runs" as a
      where a.concurrency_slot is not null
      and a.tenant = "r"."tenant"
      and a.concurrency_key = "r"."concurrency_key"
      and a.concurrency_slot < "r"."concurrency_limit"
    ) < r.concurrency_limit
  )
);

update "durably_runs" as r
set "status" = 'assigned', "version" = r.version + 1, "assignments" = r.assignments + 1, "assigned_worker_id" = "t"."workerId", "assigned_at" = {now}, "leader_epoch" = cast($1 as bigint), "waiting_for" = null, "updated_at" = {now}, "last_event_sequence" = r.last_event_sequence + "t"."eventCount"
from json_to_recordset(cast(cast(cast($2 as text) as text) as json)) as t (n integer, "runId" text, "version" bigint, "workerId" text, "eventCount" bigint)
where r.id = "t"."runId"
and (r.status || '') in ('pending', 'orphaned')
and r.version = "t"."version"
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($3 as text)
  and l.worker_id = cast($4 as text)
  and l.epoch = cast($5 as bigint)
)
and (r.concurrency_key is null
  or r.concurrency_slot is not null
)
returning id;

update "durably_runs" as r
set "status" = 'assigned', "version" = r.version + 1, "assignments" = r.assignments + 1, "assigned_worker_id" = cast($1 as text), "assigned_at" = {now}, "leader_epoch" = cast($2 as bigint), "waiting_for" = null, "updated_at" = {now}, "last_event_sequence" = r.last_event_sequence + cast($3 as bigint), "concurrency_slot" = case when not exists (
  select 1
  from "durably_runs" as a
  where a.concurrency_slot = 0
  and a.tenant = r.tenant
  and a.concurrency_key = r.concurrency_key
) then 0 else (
  select min(b.concurrency_slot) + 1
  from "durably_runs" as b
  where b.concurrency_slot is not null
  and b.tenant = r.tenant
  and b.concurrency_key = r.concurrency_key
  and not exists (
    select 1
    from "durably_runs" as a
    where a.concurrency_slot = b.concurrency_slot + 1
    and a.tenant = r.tenant
    and a.concurrency_key = r.concurrency_key
  )
) end
where r.id = cast($4 as text)
and (r.status || '') in ('pending', 'orphaned')
and r.version = cast($5 as bigint)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($6 as text)
  and l.worker_id = cast($7 as text)
  and l.epoch = cast($8 as bigint)
)
and (r.concurrency_key is null
  or (r.concurrency_slot is not null
    or (
      select count(*)
      from "durably_runs" as a
      where a.concurrency_slot is not null
      and a.tenant = "r"."tenant"
      and a.concurrency_key = "r"."concurrency_key"
      and a.concurrency_slot < "r"."concurrency_limit"
    ) < r.concurrency_limit
  )
)
and not (r.concurrency_key is null
  or r.concurrency_slot is not null
)
and pg_try_advisory_xact_lock(hashtext('durably_slots'), hashtext(r.tenant || '/' || r.concurrency_key))
returning id;

-- placement: assigned
select one.is_led, r.id, r.version, r.job_name, r.crash_count
from (
  select case when exists (
    select 1
    from "durably_leaders" as l
    where l.name = 'leader'
    and l.lead_until > ({now} + -30000 * interval '1 millisecond')
  ) then 1 else 0 end as is_led
) as one
left join (
  select r.id, r.version, r.job_name, r.crash_count, r.priority, r.available_at
  from "durably_runs" as r
  where (r.status || '') = 'assigned'
  and r.assigned_worker_id = cast($1 as text)
  order by r.priority desc, r.available_at, r.id
  limit cast($2 as bigint)
) as r on 1 = 1
order by r.priority desc, r.available_at, r.id;

-- placement: start
-- as recover, 2

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id in (
  select t."runId"
  from json_to_recordset(cast(cast(cast($4 as text) as text) as json)) as t (n integer, "runId" text, "version" bigint)
)
and (r.status || '') = 'assigned'
and r.assigned_worker_id = cast($5 as text)
and r.version = (
  select t.version
  from json_to_recordset(cast(cast(cast($6 as text) as text) as json)) as t (n integer, "runId" text, "version" bigint)
  where t."runId" = r.id
);

update "durably_runs" as r
set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = cast($1 as text), owner_id = cast($2 as text), lease_until = ({now} + cast($3 as double precision) * interval '1 millisecond'), leader_epoch = r.leader_epoch, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, null) end, waiting_for = null, deadline_at = case when r.deadline_at is null
and r.timeout_ms is not null then ({now} + r.timeout_ms * interval '1 millisecond') else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + cast($4 as bigint)
from json_to_recordset(cast(cast(cast($5 as text) as text) as json)) as t (n integer, "runId" text, "version" bigint)
where r.id = t."runId"
and (r.status || '') = 'assigned'
and r.assigned_worker_id = cast($6 as text)
and r.version = t.version
returning {columns of r: runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels;

-- placement: decline
-- as recover, 2

-- as placement: start, 2

update "durably_runs" as r
set status = 'orphaned', version = r.version + 1, updated_at = {now}, concurrency_slot = case when r.hold_key_while_waiting = 1
and r.started_at is not null then r.concurrency_slot end, last_event_sequence = r.last_event_sequence + cast($1 as bigint)
from json_to_recordset(cast(cast(cast($2 as text) as text) as json)) as t (n integer, "runId" text, "version" bigint)
where r.id = t."runId"
and (r.status || '') = 'assigned'
and r.assigned_worker_id = cast($3 as text)
and r.version = t.version
returning id;

-- placement: orphan
select r.id
from "durably_runs" as r
where (r.status || '') = 'assigned'
and (r.assigned_at <= ({now} + (- cast($1 as double precision)) * interval '1 millisecond')
  or (r.assigned_at <= ({now} + (- cast($2 as double precision)) * interval '1 millisecond')
    and not exists (
      select 1
      from "durably_workers" as w
      where w.worker_id = r.assigned_worker_id
      and w.presence <> 'detached'
      and w.alive_until > {now}
    )
  )
)
order by r.assigned_at, r.id
limit cast($3 as bigint);

-- as recover, 2

-- as schedules: fire, 1

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + cast($1 as bigint), cast($2 as text), cast(cast($3 as text) as json), {now}
from "durably_runs" as r
where r.id in (
  select value
  from json_array_elements_text(cast(cast(cast($4 as text) as text) as json))
)
and (r.status || '') = 'assigned'
and (r.assigned_at <= ({now} + (- cast($5 as double precision)) * interval '1 millisecond')
  or (r.assigned_at <= ({now} + (- cast($6 as double precision)) * interval '1 millisecond')
    and not exists (
      select 1
      from "durably_workers" as w
      where w.worker_id = r.assigned_worker_id
      and w.presence <> 'detached'
      and w.alive_until > {now}
    )
  )
)
and case when cast($7 as bigint) = 1 then not exists (
  select 1
  from "durably_leaders" as l
  where l.name = 'leader'
  and l.lead_until > ({now} + -30000 * interval '1 millisecond')
) else exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($8 as text)
  and l.worker_id = cast($9 as text)
  and l.epoch = cast($10 as bigint)
) end;

update "durably_runs" as r
set status = 'orphaned', version = r.version + 1, updated_at = {now}, concurrency_slot = case when r.hold_key_while_waiting = 1
and r.started_at is not null then r.concurrency_slot end, last_event_sequence = r.last_event_sequence + cast($1 as bigint)
where r.id in (
  select value
  from json_array_elements_text(cast(cast(cast($2 as text) as text) as json))
)
and (r.status || '') = 'assigned'
and (r.assigned_at <= ({now} + (- cast($3 as double precision)) * interval '1 millisecond')
  or (r.assigned_at <= ({now} + (- cast($4 as double precision)) * interval '1 millisecond')
    and not exists (
      select 1
      from "durably_workers" as w
      where w.worker_id = r.assigned_worker_id
      and w.presence <> 'detached'
      and w.alive_until > {now}
    )
  )
)
and case when cast($5 as bigint) = 1 then not exists (
  select 1
  from "durably_leaders" as l
  where l.name = 'leader'
  and l.lead_until > ({now} + -30000 * interval '1 millisecond')
) else exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($6 as text)
  and l.worker_id = cast($7 as text)
  and l.epoch = cast($8 as bigint)
) end
returning {columns of runs}, (
  select coalesce(json_object_agg("l"."name", "l"."value")::text, '{}')
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- placement: free
update "durably_runs" as r
set status = 'pending', version = r.version + 1, updated_at = {now}
where r.id in (
  select r.id
  from "durably_runs" as r
  where r.status = 'orphaned'
  order by r.priority desc, r.available_at, r.id
  limit cast($1 as bigint)
)
and r.status = 'orphaned'
and not exists (
  select 1
  from "durably_leaders" as l
  where l.name = 'leader'
  and l.lead_until > ({now} + -30000 * interval '1 millisecond')
)
returning id;

-- placement: forgetWorkers
-- as schedules: fire, 1

delete from "durably_workers"
where last_beat_at <= ({now} + (- cast($1 as double precision)) * interval '1 millisecond')
and not (presence <> 'detached'
  and alive_until > {now}
)
and not exists (
  select 1
  from "durably_runs" as r
  where r.status = 'running'
  and r.owner_id = worker_id
)
and not exists (
  select 1
  from "durably_runs" as r
  where (r.status || '') = 'assigned'
  and r.assigned_worker_id = worker_id
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($2 as text)
  and l.worker_id = cast($3 as text)
  and l.epoch = cast($4 as bigint)
)
returning worker_id;

delete from "durably_jobs" as j
where j.last_seen_at <= ({now} + (- cast($1 as double precision)) * interval '1 millisecond')
and not exists (
  select 1
  from "durably_workers" as w
  where coalesce(w.code_version, '') = j.code_version
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = cast($2 as text)
  and l.worker_id = cast($3 as text)
  and l.epoch = cast($4 as bigint)
);
