-- enqueue
insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
values (?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, case when ? is null then strftime('%Y-%m-%dT%H:%M:%fZ', coalesce((
        select f.created_at
        from "durably_runs" as f
        where f.id = ?
      ), {now}
    ), printf('%+.3f seconds', ? / 1000.0)
  ) when ? < coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = ?
    ), {now}
  ) then coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = ?
    ), {now}
  ) else ? end, ?, ?, ?, ?, ?, ?, coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = ?
    ), {now}
  ), {now}
)
on conflict
do nothing
returning id, version, available_at, created_at;

insert into "durably_run_labels" (run_id, name, value, tenant, created_at)
select n.id, ?, ?, n.tenant, n.created_at
from "durably_runs" as n
where n.id = ?
on conflict
do nothing;

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select n.id, ?, ?, ?, {now}
from "durably_runs" as n
where n.id = ?
on conflict
do nothing;

-- enqueue: with a key
-- as enqueue, 1

-- enqueue: a key that may refuse
-- as enqueue, 1

update "durably_runs" as n
set job_name = null
where n.tenant = ?
and n.job_name = ?
and n.idempotency_key = ?
and n.id <> ?
and not (n.payload is ?);

-- claim
with front as materialized (
  select r.id, (r.concurrency_key is null
    and r.crash_count < 2
  ) as is_plain, row_number() over (
    order by r.priority desc, r.available_at, r.id
  ) as nth
  from "durably_runs" as r indexed by "durably_runs_claim"
  where r.status = 'pending'
  and (r.available_at <= max({now}, (
        select l.created_at
        from "durably_runs" as l indexed by "durably_runs_created"
        order by l.created_at desc
        limit 1
      )
    )
    and (r.available_at <= {now}
      or r.available_at = r.created_at
    )
  )
  and +r.job_name in (
    select value
    from json_each(?)
  )
  and +r.job_name not in (
    select q.job_name
    from "durably_paused_jobs" as q
  )
  order by r.priority desc, r.available_at, r.id
  limit ?
)
update "durably_runs" as r
set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = ?, owner_id = ?, lease_until = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), leader_epoch = null, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, null) end, waiting_for = null, deadline_at = case when r.deadline_at is null
and r.timeout_ms is not null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', r.timeout_ms / 1000.0)) else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?
where r.id in (
  select f.id
  from front as f
  where f.nth < (
    select coalesce(min(o.nth), ? + 1)
    from front as o
    where not o.is_plain
  )
)
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

update "durably_runs" as r
set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = ?, owner_id = ?, lease_until = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), leader_epoch = null, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, case when not exists (
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
) end, waiting_for = null, deadline_at = case when r.deadline_at is null
and r.timeout_ms is not null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', r.timeout_ms / 1000.0)) else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?
where r.id = coalesce((
    select r.id
    from (
      select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit, r.priority, r.available_at
      from "durably_runs" as r indexed by "durably_runs_claim"
      where r.status = 'pending'
      and (r.available_at <= max({now}, (
            select l.created_at
            from "durably_runs" as l indexed by "durably_runs_created"
            order by l.created_at desc
            limit 1
          )
        )
        and (r.available_at <= {now}
          or r.available_at = r.created_at
        )
      )
      and +r.job_name in (
        select value
        from json_each(?)
      )
      and (r.crash_count < 2
        or (? = 0
          and not exists (
            select 1
            from "durably_runs" as a indexed by "durably_runs_running"
            where a.status = 'running'
            and a.owner_id = ?
            and a.claim_token = ?
            and a.crash_count >= 2
          )
        )
      )
      and +r.job_name not in (
        select q.job_name
        from "durably_paused_jobs" as q
      )
      order by r.priority desc, r.available_at, r.id
      limit 32
    ) as r
    where (r.concurrency_key is null
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
    limit 1
  ), case when exists (
    select 1
    from "durably_runs" as r indexed by "durably_runs_claim"
    where r.status = 'pending'
    and (r.available_at <= max({now}, (
          select l.created_at
          from "durably_runs" as l indexed by "durably_runs_created"
          order by l.created_at desc
          limit 1
        )
      )
      and (r.available_at <= {now}
        or r.available_at = r.created_at
      )
    )
    and +r.job_name in (
      select value
      from json_each(?)
    )
    and (r.crash_count < 2
      or (? = 0
        and not exists (
          select 1
          from "durably_runs" as a indexed by "durably_runs_running"
          where a.status = 'running'
          and a.owner_id = ?
          and a.claim_token = ?
          and a.crash_count >= 2
        )
      )
    )
    and +r.job_name not in (
      select q.job_name
      from "durably_paused_jobs" as q
    )
    order by r.priority desc, r.available_at, r.id
    limit 1 offset 31
  ) then (
    with recursive keys (tenant, concurrency_key, concurrency_limit, nth) as (
      select r.tenant, r.concurrency_key, r.concurrency_limit, 1
      from "durably_runs" as r
      where r.rowid = coalesce( (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant = ?
          and r.concurrency_key >= ?
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant > ?
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        )
      )
      union all
      select r.tenant, r.concurrency_key, r.concurrency_limit, k.nth + (r.tenant <> k.tenant
        or r.concurrency_key <> k.concurrency_key
      )
      from keys as k
      cross join "durably_runs" as r
      where k.nth <= 128
      and r.rowid = coalesce( (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and "r"."tenant" = "k"."tenant"
          and "r"."concurrency_key" = "k"."concurrency_key"
          and r.concurrency_limit > k.concurrency_limit
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and "r"."tenant" = "k"."tenant"
          and r.concurrency_key > k.concurrency_key
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant > k.tenant
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        )
      )
    ), found as (
      select *
      from (
        select r.id, r.priority, r.available_at
        from "durably_runs" as r indexed by "durably_runs_claim_keyless"
        where r.status = 'pending'
        and (r.available_at <= max({now}, (
              select l.created_at
              from "durably_runs" as l indexed by "durably_runs_created"
              order by l.created_at desc
              limit 1
            )
          )
          and (r.available_at <= {now}
            or r.available_at = r.created_at
          )
        )
        and +r.job_name in (
          select value
          from json_each(?)
        )
        and (r.crash_count < 2
          or (? = 0
            and not exists (
              select 1
              from "durably_runs" as a indexed by "durably_runs_running"
              where a.status = 'running'
              and a.owner_id = ?
              and a.claim_token = ?
              and a.crash_count >= 2
            )
          )
        )
        and +r.job_name not in (
          select q.job_name
          from "durably_paused_jobs" as q
        )
        and r.concurrency_key is null
        order by r.priority desc, r.available_at, r.id
        limit 1
      )
      union all
      select *
      from (
        select r.id, r.priority, r.available_at
        from (
          select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit, r.priority, r.available_at
          from "durably_runs" as r indexed by "durably_runs_claim"
          where r.status = 'pending'
          and (r.available_at <= max({now}, (
                select l.created_at
                from "durably_runs" as l indexed by "durably_runs_created"
                order by l.created_at desc
                limit 1
              )
            )
            and (r.available_at <= {now}
              or r.available_at = r.created_at
            )
          )
          and +r.job_name in (
            select value
            from json_each(?)
          )
          and (r.crash_count < 2
            or (? = 0
              and not exists (
                select 1
                from "durably_runs" as a indexed by "durably_runs_running"
                where a.status = 'running'
                and a.owner_id = ?
                and a.claim_token = ?
                and a.crash_count >= 2
              )
            )
          )
          and +r.job_name not in (
            select q.job_name
            from "durably_paused_jobs" as q
          )
          order by r.priority desc, r.available_at, r.id
          limit 128 offset 32
        ) as r
        where (r.concurrency_key is null
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
        limit 1
      )
      union all
      select r.id, r.priority, r.available_at
      from keys as k
      cross join "durably_runs" as r indexed by "durably_runs_slot"
      where k.nth <= 128
      and "r"."tenant" = "k"."tenant"
      and "r"."concurrency_key" = "k"."concurrency_key"
      and r.concurrency_slot is not null
      and r.status = 'pending'
      and (r.available_at <= max({now}, (
            select l.created_at
            from "durably_runs" as l indexed by "durably_runs_created"
            order by l.created_at desc
            limit 1
          )
        )
        and (r.available_at <= {now}
          or r.available_at = r.created_at
        )
      )
      and +r.job_name in (
        select value
        from json_each(?)
      )
      and (r.crash_count < 2
        or (? = 0
          and not exists (
            select 1
            from "durably_runs" as a indexed by "durably_runs_running"
            where a.status = 'running'
            and a.owner_id = ?
            and a.claim_token = ?
            and a.crash_count >= 2
          )
        )
      )
      and +r.job_name not in (
        select q.job_name
        from "durably_paused_jobs" as q
      )
      union all
      select r.id, r.priority, r.available_at
      from keys as k
      cross join "durably_runs" as r
      where k.nth <= 128
      and (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "k"."tenant"
        and a.concurrency_key = "k"."concurrency_key"
        and a.concurrency_slot < "k"."concurrency_limit"
      ) < k.concurrency_limit
      and r.rowid = (
        select r.rowid
        from "durably_runs" as r indexed by "durably_runs_claim_by_key"
        where r.status = 'pending'
        and (r.available_at <= max({now}, (
              select l.created_at
              from "durably_runs" as l indexed by "durably_runs_created"
              order by l.created_at desc
              limit 1
            )
          )
          and (r.available_at <= {now}
            or r.available_at = r.created_at
          )
        )
        and +r.job_name in (
          select value
          from json_each(?)
        )
        and (r.crash_count < 2
          or (? = 0
            and not exists (
              select 1
              from "durably_runs" as a indexed by "durably_runs_running"
              where a.status = 'running'
              and a.owner_id = ?
              and a.claim_token = ?
              and a.crash_count >= 2
            )
          )
        )
        and +r.job_name not in (
          select q.job_name
          from "durably_paused_jobs" as q
        )
        and r.concurrency_key is not null
        and "r"."tenant" = "k"."tenant"
        and "r"."concurrency_key" = "k"."concurrency_key"
        and "r"."concurrency_limit" = "k"."concurrency_limit"
        order by r.priority desc, r.available_at, r.id
        limit 1
      )
    )
    select r.id
    from found as r
    order by r.priority desc, r.available_at, r.id
    limit 1
  ) end
)
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

update "durably_runs" as r
set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = ?, owner_id = ?, lease_until = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), leader_epoch = null, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, case when not exists (
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
) end, waiting_for = null, deadline_at = case when r.deadline_at is null
and r.timeout_ms is not null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', r.timeout_ms / 1000.0)) else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?
where r.id = case when changes() > 0 then coalesce((
    select r.id
    from (
      select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit, r.priority, r.available_at
      from "durably_runs" as r indexed by "durably_runs_claim"
      where r.status = 'pending'
      and (r.available_at <= max({now}, (
            select l.created_at
            from "durably_runs" as l indexed by "durably_runs_created"
            order by l.created_at desc
            limit 1
          )
        )
        and (r.available_at <= {now}
          or r.available_at = r.created_at
        )
      )
      and +r.job_name in (
        select value
        from json_each(?)
      )
      and (r.crash_count < 2
        or (? = 0
          and not exists (
            select 1
            from "durably_runs" as a indexed by "durably_runs_running"
            where a.status = 'running'
            and a.owner_id = ?
            and a.claim_token = ?
            and a.crash_count >= 2
          )
        )
      )
      and +r.job_name not in (
        select q.job_name
        from "durably_paused_jobs" as q
      )
      order by r.priority desc, r.available_at, r.id
      limit 32
    ) as r
    where (r.concurrency_key is null
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
    limit 1
  ), case when exists (
    select 1
    from "durably_runs" as r indexed by "durably_runs_claim"
    where r.status = 'pending'
    and (r.available_at <= max({now}, (
          select l.created_at
          from "durably_runs" as l indexed by "durably_runs_created"
          order by l.created_at desc
          limit 1
        )
      )
      and (r.available_at <= {now}
        or r.available_at = r.created_at
      )
    )
    and +r.job_name in (
      select value
      from json_each(?)
    )
    and (r.crash_count < 2
      or (? = 0
        and not exists (
          select 1
          from "durably_runs" as a indexed by "durably_runs_running"
          where a.status = 'running'
          and a.owner_id = ?
          and a.claim_token = ?
          and a.crash_count >= 2
        )
      )
    )
    and +r.job_name not in (
      select q.job_name
      from "durably_paused_jobs" as q
    )
    order by r.priority desc, r.available_at, r.id
    limit 1 offset 31
  ) then (
    with recursive keys (tenant, concurrency_key, concurrency_limit, nth) as (
      select r.tenant, r.concurrency_key, r.concurrency_limit, 1
      from "durably_runs" as r
      where r.rowid = coalesce( (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant = ?
          and r.concurrency_key >= ?
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant > ?
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        )
      )
      union all
      select r.tenant, r.concurrency_key, r.concurrency_limit, k.nth + (r.tenant <> k.tenant
        or r.concurrency_key <> k.concurrency_key
      )
      from keys as k
      cross join "durably_runs" as r
      where k.nth <= 128
      and r.rowid = coalesce( (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and "r"."tenant" = "k"."tenant"
          and "r"."concurrency_key" = "k"."concurrency_key"
          and r.concurrency_limit > k.concurrency_limit
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and "r"."tenant" = "k"."tenant"
          and r.concurrency_key > k.concurrency_key
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant > k.tenant
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        )
      )
    ), found as (
      select *
      from (
        select r.id, r.priority, r.available_at
        from "durably_runs" as r indexed by "durably_runs_claim_keyless"
        where r.status = 'pending'
        and (r.available_at <= max({now}, (
              select l.created_at
              from "durably_runs" as l indexed by "durably_runs_created"
              order by l.created_at desc
              limit 1
            )
          )
          and (r.available_at <= {now}
            or r.available_at = r.created_at
          )
        )
        and +r.job_name in (
          select value
          from json_each(?)
        )
        and (r.crash_count < 2
          or (? = 0
            and not exists (
              select 1
              from "durably_runs" as a indexed by "durably_runs_running"
              where a.status = 'running'
              and a.owner_id = ?
              and a.claim_token = ?
              and a.crash_count >= 2
            )
          )
        )
        and +r.job_name not in (
          select q.job_name
          from "durably_paused_jobs" as q
        )
        and r.concurrency_key is null
        order by r.priority desc, r.available_at, r.id
        limit 1
      )
      union all
      select *
      from (
        select r.id, r.priority, r.available_at
        from (
          select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit, r.priority, r.available_at
          from "durably_runs" as r indexed by "durably_runs_claim"
          where r.status = 'pending'
          and (r.available_at <= max({now}, (
                select l.created_at
                from "durably_runs" as l indexed by "durably_runs_created"
                order by l.created_at desc
                limit 1
              )
            )
            and (r.available_at <= {now}
              or r.available_at = r.created_at
            )
          )
          and +r.job_name in (
            select value
            from json_each(?)
          )
          and (r.crash_count < 2
            or (? = 0
              and not exists (
                select 1
                from "durably_runs" as a indexed by "durably_runs_running"
                where a.status = 'running'
                and a.owner_id = ?
                and a.claim_token = ?
                and a.crash_count >= 2
              )
            )
          )
          and +r.job_name not in (
            select q.job_name
            from "durably_paused_jobs" as q
          )
          order by r.priority desc, r.available_at, r.id
          limit 128 offset 32
        ) as r
        where (r.concurrency_key is null
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
        limit 1
      )
      union all
      select r.id, r.priority, r.available_at
      from keys as k
      cross join "durably_runs" as r indexed by "durably_runs_slot"
      where k.nth <= 128
      and "r"."tenant" = "k"."tenant"
      and "r"."concurrency_key" = "k"."concurrency_key"
      and r.concurrency_slot is not null
      and r.status = 'pending'
      and (r.available_at <= max({now}, (
            select l.created_at
            from "durably_runs" as l indexed by "durably_runs_created"
            order by l.created_at desc
            limit 1
          )
        )
        and (r.available_at <= {now}
          or r.available_at = r.created_at
        )
      )
      and +r.job_name in (
        select value
        from json_each(?)
      )
      and (r.crash_count < 2
        or (? = 0
          and not exists (
            select 1
            from "durably_runs" as a indexed by "durably_runs_running"
            where a.status = 'running'
            and a.owner_id = ?
            and a.claim_token = ?
            and a.crash_count >= 2
          )
        )
      )
      and +r.job_name not in (
        select q.job_name
        from "durably_paused_jobs" as q
      )
      union all
      select r.id, r.priority, r.available_at
      from keys as k
      cross join "durably_runs" as r
      where k.nth <= 128
      and (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "k"."tenant"
        and a.concurrency_key = "k"."concurrency_key"
        and a.concurrency_slot < "k"."concurrency_limit"
      ) < k.concurrency_limit
      and r.rowid = (
        select r.rowid
        from "durably_runs" as r indexed by "durably_runs_claim_by_key"
        where r.status = 'pending'
        and (r.available_at <= max({now}, (
              select l.created_at
              from "durably_runs" as l indexed by "durably_runs_created"
              order by l.created_at desc
              limit 1
            )
          )
          and (r.available_at <= {now}
            or r.available_at = r.created_at
          )
        )
        and +r.job_name in (
          select value
          from json_each(?)
        )
        and (r.crash_count < 2
          or (? = 0
            and not exists (
              select 1
              from "durably_runs" as a indexed by "durably_runs_running"
              where a.status = 'running'
              and a.owner_id = ?
              and a.claim_token = ?
              and a.crash_count >= 2
            )
          )
        )
        and +r.job_name not in (
          select q.job_name
          from "durably_paused_jobs" as q
        )
        and r.concurrency_key is not null
        and "r"."tenant" = "k"."tenant"
        and "r"."concurrency_key" = "k"."concurrency_key"
        and "r"."concurrency_limit" = "k"."concurrency_limit"
        order by r.priority desc, r.available_at, r.id
        limit 1
      )
    )
    select r.id
    from found as r
    order by r.priority desc, r.available_at, r.id
    limit 1
  ) end
) end
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- claim: under limits
update "durably_job_starts"
set started_at = {now}
where job_name = ?
and (
  select l.started_at
  from "durably_job_starts" as l
  where l.job_name = ?
  order by l.nth desc
  limit 1
) > {now}
and started_at > {now};

update "durably_runs" as r
set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = ?, owner_id = ?, lease_until = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), leader_epoch = null, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, case when not exists (
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
) end, waiting_for = null, deadline_at = case when r.deadline_at is null
and r.timeout_ms is not null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', r.timeout_ms / 1000.0)) else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?
where r.id = case when (? is null
  or (
    select count(*)
    from "durably_runs" as r indexed by "durably_runs_running"
    where r.status = 'running'
    and r.job_name = ?
  ) + 1 <= ?
)
and (? is null
  or (1 <= ?
    and not exists (
      select 1
      from "durably_job_starts" as s
      where s.job_name = ?
      and s.nth = coalesce((
          select max(l.nth)
          from "durably_job_starts" as l
          where l.job_name = ?
        ), 0
      ) - ? + 1
      and s.started_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
    )
  )
) then coalesce((
    select r.id
    from (
      select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit, r.priority, r.available_at
      from "durably_runs" as r indexed by "durably_runs_claim"
      where r.status = 'pending'
      and (r.available_at <= max({now}, (
            select l.created_at
            from "durably_runs" as l indexed by "durably_runs_created"
            order by l.created_at desc
            limit 1
          )
        )
        and (r.available_at <= {now}
          or r.available_at = r.created_at
        )
      )
      and +r.job_name in (
        select value
        from json_each(?)
      )
      and (r.crash_count < 2
        or (? = 0
          and not exists (
            select 1
            from "durably_runs" as a indexed by "durably_runs_running"
            where a.status = 'running'
            and a.owner_id = ?
            and a.claim_token = ?
            and a.crash_count >= 2
          )
        )
      )
      and +r.job_name not in (
        select q.job_name
        from "durably_paused_jobs" as q
      )
      order by r.priority desc, r.available_at, r.id
      limit 32
    ) as r
    where (r.concurrency_key is null
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
    limit 1
  ), case when exists (
    select 1
    from "durably_runs" as r indexed by "durably_runs_claim"
    where r.status = 'pending'
    and (r.available_at <= max({now}, (
          select l.created_at
          from "durably_runs" as l indexed by "durably_runs_created"
          order by l.created_at desc
          limit 1
        )
      )
      and (r.available_at <= {now}
        or r.available_at = r.created_at
      )
    )
    and +r.job_name in (
      select value
      from json_each(?)
    )
    and (r.crash_count < 2
      or (? = 0
        and not exists (
          select 1
          from "durably_runs" as a indexed by "durably_runs_running"
          where a.status = 'running'
          and a.owner_id = ?
          and a.claim_token = ?
          and a.crash_count >= 2
        )
      )
    )
    and +r.job_name not in (
      select q.job_name
      from "durably_paused_jobs" as q
    )
    order by r.priority desc, r.available_at, r.id
    limit 1 offset 31
  ) then (
    with recursive keys (tenant, concurrency_key, concurrency_limit, nth) as (
      select r.tenant, r.concurrency_key, r.concurrency_limit, 1
      from "durably_runs" as r
      where r.rowid = coalesce( (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant = ?
          and r.concurrency_key >= ?
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant > ?
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        )
      )
      union all
      select r.tenant, r.concurrency_key, r.concurrency_limit, k.nth + (r.tenant <> k.tenant
        or r.concurrency_key <> k.concurrency_key
      )
      from keys as k
      cross join "durably_runs" as r
      where k.nth <= 128
      and r.rowid = coalesce( (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and "r"."tenant" = "k"."tenant"
          and "r"."concurrency_key" = "k"."concurrency_key"
          and r.concurrency_limit > k.concurrency_limit
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and "r"."tenant" = "k"."tenant"
          and r.concurrency_key > k.concurrency_key
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant > k.tenant
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        )
      )
    ), found as (
      select *
      from (
        select r.id, r.priority, r.available_at
        from "durably_runs" as r indexed by "durably_runs_claim_keyless"
        where r.status = 'pending'
        and (r.available_at <= max({now}, (
              select l.created_at
              from "durably_runs" as l indexed by "durably_runs_created"
              order by l.created_at desc
              limit 1
            )
          )
          and (r.available_at <= {now}
            or r.available_at = r.created_at
          )
        )
        and +r.job_name in (
          select value
          from json_each(?)
        )
        and (r.crash_count < 2
          or (? = 0
            and not exists (
              select 1
              from "durably_runs" as a indexed by "durably_runs_running"
              where a.status = 'running'
              and a.owner_id = ?
              and a.claim_token = ?
              and a.crash_count >= 2
            )
          )
        )
        and +r.job_name not in (
          select q.job_name
          from "durably_paused_jobs" as q
        )
        and r.concurrency_key is null
        order by r.priority desc, r.available_at, r.id
        limit 1
      )
      union all
      select *
      from (
        select r.id, r.priority, r.available_at
        from (
          select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit, r.priority, r.available_at
          from "durably_runs" as r indexed by "durably_runs_claim"
          where r.status = 'pending'
          and (r.available_at <= max({now}, (
                select l.created_at
                from "durably_runs" as l indexed by "durably_runs_created"
                order by l.created_at desc
                limit 1
              )
            )
            and (r.available_at <= {now}
              or r.available_at = r.created_at
            )
          )
          and +r.job_name in (
            select value
            from json_each(?)
          )
          and (r.crash_count < 2
            or (? = 0
              and not exists (
                select 1
                from "durably_runs" as a indexed by "durably_runs_running"
                where a.status = 'running'
                and a.owner_id = ?
                and a.claim_token = ?
                and a.crash_count >= 2
              )
            )
          )
          and +r.job_name not in (
            select q.job_name
            from "durably_paused_jobs" as q
          )
          order by r.priority desc, r.available_at, r.id
          limit 128 offset 32
        ) as r
        where (r.concurrency_key is null
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
        limit 1
      )
      union all
      select r.id, r.priority, r.available_at
      from keys as k
      cross join "durably_runs" as r indexed by "durably_runs_slot"
      where k.nth <= 128
      and "r"."tenant" = "k"."tenant"
      and "r"."concurrency_key" = "k"."concurrency_key"
      and r.concurrency_slot is not null
      and r.status = 'pending'
      and (r.available_at <= max({now}, (
            select l.created_at
            from "durably_runs" as l indexed by "durably_runs_created"
            order by l.created_at desc
            limit 1
          )
        )
        and (r.available_at <= {now}
          or r.available_at = r.created_at
        )
      )
      and +r.job_name in (
        select value
        from json_each(?)
      )
      and (r.crash_count < 2
        or (? = 0
          and not exists (
            select 1
            from "durably_runs" as a indexed by "durably_runs_running"
            where a.status = 'running'
            and a.owner_id = ?
            and a.claim_token = ?
            and a.crash_count >= 2
          )
        )
      )
      and +r.job_name not in (
        select q.job_name
        from "durably_paused_jobs" as q
      )
      union all
      select r.id, r.priority, r.available_at
      from keys as k
      cross join "durably_runs" as r
      where k.nth <= 128
      and (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "k"."tenant"
        and a.concurrency_key = "k"."concurrency_key"
        and a.concurrency_slot < "k"."concurrency_limit"
      ) < k.concurrency_limit
      and r.rowid = (
        select r.rowid
        from "durably_runs" as r indexed by "durably_runs_claim_by_key"
        where r.status = 'pending'
        and (r.available_at <= max({now}, (
              select l.created_at
              from "durably_runs" as l indexed by "durably_runs_created"
              order by l.created_at desc
              limit 1
            )
          )
          and (r.available_at <= {now}
            or r.available_at = r.created_at
          )
        )
        and +r.job_name in (
          select value
          from json_each(?)
        )
        and (r.crash_count < 2
          or (? = 0
            and not exists (
              select 1
              from "durably_runs" as a indexed by "durably_runs_running"
              where a.status = 'running'
              and a.owner_id = ?
              and a.claim_token = ?
              and a.crash_count >= 2
            )
          )
        )
        and +r.job_name not in (
          select q.job_name
          from "durably_paused_jobs" as q
        )
        and r.concurrency_key is not null
        and "r"."tenant" = "k"."tenant"
        and "r"."concurrency_key" = "k"."concurrency_key"
        and "r"."concurrency_limit" = "k"."concurrency_limit"
        order by r.priority desc, r.available_at, r.id
        limit 1
      )
    )
    select r.id
    from found as r
    order by r.priority desc, r.available_at, r.id
    limit 1
  ) end
) end
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

insert into "durably_job_starts" (job_name, nth, started_at)
select ?, coalesce((
    select max(l.nth)
    from "durably_job_starts" as l
    where l.job_name = ?
  ), 0
) + 1, {now}
where changes() > 0;

update "durably_runs" as r
set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = ?, owner_id = ?, lease_until = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), leader_epoch = null, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, case when not exists (
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
) end, waiting_for = null, deadline_at = case when r.deadline_at is null
and r.timeout_ms is not null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', r.timeout_ms / 1000.0)) else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?
where r.id = case when changes() > 0
and (? is null
  or (
    select count(*)
    from "durably_runs" as r indexed by "durably_runs_running"
    where r.status = 'running'
    and r.job_name = ?
  ) + 1 <= ?
)
and (? is null
  or (1 <= ?
    and not exists (
      select 1
      from "durably_job_starts" as s
      where s.job_name = ?
      and s.nth = coalesce((
          select max(l.nth)
          from "durably_job_starts" as l
          where l.job_name = ?
        ), 0
      ) - ? + 1
      and s.started_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
    )
  )
) then coalesce((
    select r.id
    from (
      select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit, r.priority, r.available_at
      from "durably_runs" as r indexed by "durably_runs_claim"
      where r.status = 'pending'
      and (r.available_at <= max({now}, (
            select l.created_at
            from "durably_runs" as l indexed by "durably_runs_created"
            order by l.created_at desc
            limit 1
          )
        )
        and (r.available_at <= {now}
          or r.available_at = r.created_at
        )
      )
      and +r.job_name in (
        select value
        from json_each(?)
      )
      and (r.crash_count < 2
        or (? = 0
          and not exists (
            select 1
            from "durably_runs" as a indexed by "durably_runs_running"
            where a.status = 'running'
            and a.owner_id = ?
            and a.claim_token = ?
            and a.crash_count >= 2
          )
        )
      )
      and +r.job_name not in (
        select q.job_name
        from "durably_paused_jobs" as q
      )
      order by r.priority desc, r.available_at, r.id
      limit 32
    ) as r
    where (r.concurrency_key is null
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
    limit 1
  ), case when exists (
    select 1
    from "durably_runs" as r indexed by "durably_runs_claim"
    where r.status = 'pending'
    and (r.available_at <= max({now}, (
          select l.created_at
          from "durably_runs" as l indexed by "durably_runs_created"
          order by l.created_at desc
          limit 1
        )
      )
      and (r.available_at <= {now}
        or r.available_at = r.created_at
      )
    )
    and +r.job_name in (
      select value
      from json_each(?)
    )
    and (r.crash_count < 2
      or (? = 0
        and not exists (
          select 1
          from "durably_runs" as a indexed by "durably_runs_running"
          where a.status = 'running'
          and a.owner_id = ?
          and a.claim_token = ?
          and a.crash_count >= 2
        )
      )
    )
    and +r.job_name not in (
      select q.job_name
      from "durably_paused_jobs" as q
    )
    order by r.priority desc, r.available_at, r.id
    limit 1 offset 31
  ) then (
    with recursive keys (tenant, concurrency_key, concurrency_limit, nth) as (
      select r.tenant, r.concurrency_key, r.concurrency_limit, 1
      from "durably_runs" as r
      where r.rowid = coalesce( (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant = ?
          and r.concurrency_key >= ?
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant > ?
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        )
      )
      union all
      select r.tenant, r.concurrency_key, r.concurrency_limit, k.nth + (r.tenant <> k.tenant
        or r.concurrency_key <> k.concurrency_key
      )
      from keys as k
      cross join "durably_runs" as r
      where k.nth <= 128
      and r.rowid = coalesce( (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and "r"."tenant" = "k"."tenant"
          and "r"."concurrency_key" = "k"."concurrency_key"
          and r.concurrency_limit > k.concurrency_limit
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and "r"."tenant" = "k"."tenant"
          and r.concurrency_key > k.concurrency_key
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        ), (
          select r.rowid
          from "durably_runs" as r indexed by "durably_runs_claim_by_key"
          where r.status = 'pending'
          and r.concurrency_key is not null
          and r.tenant > k.tenant
          order by r.tenant, r.concurrency_key, r.concurrency_limit
          limit 1
        )
      )
    ), found as (
      select *
      from (
        select r.id, r.priority, r.available_at
        from "durably_runs" as r indexed by "durably_runs_claim_keyless"
        where r.status = 'pending'
        and (r.available_at <= max({now}, (
              select l.created_at
              from "durably_runs" as l indexed by "durably_runs_created"
              order by l.created_at desc
              limit 1
            )
          )
          and (r.available_at <= {now}
            or r.available_at = r.created_at
          )
        )
        and +r.job_name in (
          select value
          from json_each(?)
        )
        and (r.crash_count < 2
          or (? = 0
            and not exists (
              select 1
              from "durably_runs" as a indexed by "durably_runs_running"
              where a.status = 'running'
              and a.owner_id = ?
              and a.claim_token = ?
              and a.crash_count >= 2
            )
          )
        )
        and +r.job_name not in (
          select q.job_name
          from "durably_paused_jobs" as q
        )
        and r.concurrency_key is null
        order by r.priority desc, r.available_at, r.id
        limit 1
      )
      union all
      select *
      from (
        select r.id, r.priority, r.available_at
        from (
          select r.id, r.tenant, r.concurrency_key, r.concurrency_slot, r.concurrency_limit, r.priority, r.available_at
          from "durably_runs" as r indexed by "durably_runs_claim"
          where r.status = 'pending'
          and (r.available_at <= max({now}, (
                select l.created_at
                from "durably_runs" as l indexed by "durably_runs_created"
                order by l.created_at desc
                limit 1
              )
            )
            and (r.available_at <= {now}
              or r.available_at = r.created_at
            )
          )
          and +r.job_name in (
            select value
            from json_each(?)
          )
          and (r.crash_count < 2
            or (? = 0
              and not exists (
                select 1
                from "durably_runs" as a indexed by "durably_runs_running"
                where a.status = 'running'
                and a.owner_id = ?
                and a.claim_token = ?
                and a.crash_count >= 2
              )
            )
          )
          and +r.job_name not in (
            select q.job_name
            from "durably_paused_jobs" as q
          )
          order by r.priority desc, r.available_at, r.id
          limit 128 offset 32
        ) as r
        where (r.concurrency_key is null
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
        limit 1
      )
      union all
      select r.id, r.priority, r.available_at
      from keys as k
      cross join "durably_runs" as r indexed by "durably_runs_slot"
      where k.nth <= 128
      and "r"."tenant" = "k"."tenant"
      and "r"."concurrency_key" = "k"."concurrency_key"
      and r.concurrency_slot is not null
      and r.status = 'pending'
      and (r.available_at <= max({now}, (
            select l.created_at
            from "durably_runs" as l indexed by "durably_runs_created"
            order by l.created_at desc
            limit 1
          )
        )
        and (r.available_at <= {now}
          or r.available_at = r.created_at
        )
      )
      and +r.job_name in (
        select value
        from json_each(?)
      )
      and (r.crash_count < 2
        or (? = 0
          and not exists (
            select 1
            from "durably_runs" as a indexed by "durably_runs_running"
            where a.status = 'running'
            and a.owner_id = ?
            and a.claim_token = ?
            and a.crash_count >= 2
          )
        )
      )
      and +r.job_name not in (
        select q.job_name
        from "durably_paused_jobs" as q
      )
      union all
      select r.id, r.priority, r.available_at
      from keys as k
      cross join "durably_runs" as r
      where k.nth <= 128
      and (
        select count(*)
        from "durably_runs" as a
        where a.concurrency_slot is not null
        and a.tenant = "k"."tenant"
        and a.concurrency_key = "k"."concurrency_key"
        and a.concurrency_slot < "k"."concurrency_limit"
      ) < k.concurrency_limit
      and r.rowid = (
        select r.rowid
        from "durably_runs" as r indexed by "durably_runs_claim_by_key"
        where r.status = 'pending'
        and (r.available_at <= max({now}, (
              select l.created_at
              from "durably_runs" as l indexed by "durably_runs_created"
              order by l.created_at desc
              limit 1
            )
          )
          and (r.available_at <= {now}
            or r.available_at = r.created_at
          )
        )
        and +r.job_name in (
          select value
          from json_each(?)
        )
        and (r.crash_count < 2
          or (? = 0
            and not exists (
              select 1
              from "durably_runs" as a indexed by "durably_runs_running"
              where a.status = 'running'
              and a.owner_id = ?
              and a.claim_token = ?
              and a.crash_count >= 2
            )
          )
        )
        and +r.job_name not in (
          select q.job_name
          from "durably_paused_jobs" as q
        )
        and r.concurrency_key is not null
        and "r"."tenant" = "k"."tenant"
        and "r"."concurrency_key" = "k"."concurrency_key"
        and "r"."concurrency_limit" = "k"."concurrency_limit"
        order by r.priority desc, r.available_at, r.id
        limit 1
      )
    )
    select r.id
    from found as r
    order by r.priority desc, r.available_at, r.id
    limit 1
  ) end
) end
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

delete from "durably_job_starts"
where job_name = ?
and nth <= coalesce((
    select max(l.nth)
    from "durably_job_starts" as l
    where l.job_name = ?
  ), 0
) - 10000;

select (
  select count(*)
  from "durably_runs" as r indexed by "durably_runs_running"
  where r.status = 'running'
  and r.job_name = ?
) as running, {now} as now, strftime('%Y-%m-%dT%H:%M:%fZ', (
    select s.started_at
    from "durably_job_starts" as s
    where s.job_name = ?
    and s.nth = coalesce((
        select max(l.nth)
        from "durably_job_starts" as l
        where l.job_name = ?
      ), 0
    ) - ? + 1
  ), printf('%+.3f seconds', ? / 1000.0)
) as opens_at;

-- commit: a step
insert into "durably_steps" as s ({columns of steps})
select ?, r.id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, case when ? is not null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)) end), r.lease_epoch, r.claim_token, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), case when ? in ('completed', 'failed') then {now} end
from "durably_runs" as r
where r.id = ?
and r.status = 'running'
and r.lease_epoch = ?
and r.claim_token = ?
and r.leader_epoch is ?
and r.commit_no = ? - 1
on conflict (id)
do update
set due_at = coalesce(s.due_at, excluded.due_at), "name" = "excluded"."name", "index" = "excluded"."index", "kind" = "excluded"."kind", "status" = "excluded"."status", "attempt" = "excluded"."attempt", "output" = "excluded"."output", "error" = "excluded"."error", "error_detail" = "excluded"."error_detail", "checkpoint" = "excluded"."checkpoint", "wait_name" = "excluded"."wait_name", "lease_epoch" = "excluded"."lease_epoch", "claim_token" = "excluded"."claim_token", "started_at" = "excluded"."started_at", "completed_at" = "excluded"."completed_at";

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id = ?
and r.status = 'running'
and r.lease_epoch = ?
and r.claim_token = ?
and r.leader_epoch is ?
and r.commit_no = ? - 1;

update "durably_runs" as r
set "version" = r.version + 1, "updated_at" = {now}, "commit_no" = ?, "crash_count" = case when ? = 1 then 0 else r.crash_count end, "current_step_index" = coalesce(?, r.current_step_index), "progress" = coalesce(?, r.progress), "heartbeat_at" = {now}, "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), "last_event_sequence" = r.last_event_sequence + ?
where r.id = ?
and r.status = 'running'
and r.lease_epoch = ?
and r.claim_token = ?
and r.leader_epoch is ?
and r.commit_no = ? - 1
returning status, last_event_sequence, wakes, cancel_requested_at;

-- commit: all there is
insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, case when ? is null then strftime('%Y-%m-%dT%H:%M:%fZ', coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = ?
    ), {now}
  ), printf('%+.3f seconds', ? / 1000.0)
) when ? < coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
) then coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
) else ? end, ?, ?, ?, ?, ?, ?, coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
), {now}
from "durably_runs" as r
where r.id = ?
and r.status = 'running'
and r.lease_epoch = ?
and r.claim_token = ?
and r.leader_epoch is ?
and r.commit_no = ? - 1
on conflict
do nothing;

insert into "durably_steps" as s ({columns of steps})
select ?, r.id, ?, ?, ?, ?, ?, (
  select '"' || c.id || '"'
  from "durably_runs" as c
  where c.id = coalesce( (
      select a.id
      from "durably_runs" as a
      where a.id = ?
    ), (
      select b.id
      from "durably_runs" as b
      where b.tenant = ?
      and b.job_name = ?
      and b.idempotency_key = ?
    )
  )
), ?, ?, ?, ?, coalesce(?, case when ? is not null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)) end), r.lease_epoch, r.claim_token, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), case when ? in ('completed', 'failed') then {now} end
from "durably_runs" as r
where r.id = ?
and r.status = 'running'
and r.lease_epoch = ?
and r.claim_token = ?
and r.leader_epoch is ?
and r.commit_no = ? - 1
on conflict (id)
do update
set due_at = coalesce(s.due_at, excluded.due_at), "name" = "excluded"."name", "index" = "excluded"."index", "kind" = "excluded"."kind", "status" = "excluded"."status", "attempt" = "excluded"."attempt", "output" = "excluded"."output", "error" = "excluded"."error", "error_detail" = "excluded"."error_detail", "checkpoint" = "excluded"."checkpoint", "wait_name" = "excluded"."wait_name", "lease_epoch" = "excluded"."lease_epoch", "claim_token" = "excluded"."claim_token", "started_at" = "excluded"."started_at", "completed_at" = "excluded"."completed_at"
returning "output" as output;

insert into "durably_logs" ({columns of logs})
select ?, r.id, ?, ?, ?, ?, ?
from "durably_runs" as r
where r.id = ?
and r.status = 'running'
and r.lease_epoch = ?
and r.claim_token = ?
and r.leader_epoch is ?
and r.commit_no = ? - 1
on conflict (id)
do nothing;

update "durably_signals"
set consumed_at = {now}
where run_id = ?
and consumed_at is null
and position in (
  select value
  from json_each(?)
)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and r.status = 'running'
  and r.lease_epoch = ?
  and r.claim_token = ?
  and r.leader_epoch is ?
  and r.commit_no = ? - 1
);

-- as commit: a step, 3

-- commit: of many runs
-- as commit: a step, 1

-- as commit: a step, 2

-- as commit: a step, 3

-- commit: ends of plain runs
update "durably_runs" as parent
set "wakes" = "parent"."wakes" + 1, "version" = "parent"."version" + 1, "updated_at" = {now}, "available_at" = case when "parent"."status" = 'pending'
and json_extract("parent"."waiting_for", '$.kind') = 'steps' then case when case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end is null
or case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end <= {now}
or "parent"."wakes" + 1 >= "parent"."wakes_wanted" then "parent"."created_at" else min(coalesce("parent"."available_at", case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end), case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end) end else "parent"."available_at" end
where parent.id in (
  select r.parent_run_id
  from "durably_runs" as r
  where r.id = ?
  and r.status = 'running'
  and r.lease_epoch = ?
  and r.claim_token = ?
  and r.leader_epoch is ?
  and r.commit_no = ? - 1
  union all
  select a.value
  from "durably_runs" as r
  cross join json_each(r.also_awaited_by) as a
  where r.id = ?
  and r.status = 'running'
  and r.lease_epoch = ?
  and r.claim_token = ?
  and r.leader_epoch is ?
  and r.commit_no = ? - 1
)
and parent.finished_at is null
returning id;

update "durably_runs" as r
set "version" = r.version + 1, "updated_at" = {now}, "commit_no" = ?, "crash_count" = case when ? = 1 then 0 else r.crash_count end, "current_step_index" = coalesce(?, r.current_step_index), "progress" = coalesce(?, r.progress), "heartbeat_at" = {now}, "output" = case when r.cancel_requested_at is null then ? else "r"."output" end, "error" = case when r.cancel_requested_at is null then null else "r"."error" end, "error_detail" = case when r.cancel_requested_at is null then null else "r"."error_detail" end, "status" = case when r.cancel_requested_at is null then 'completed' else 'cancelled' end, "finished_at" = {now}, "concurrency_slot" = null, "waiting_for" = null, "owner_id" = null, "lease_until" = null, "last_event_sequence" = r.last_event_sequence + case when r.cancel_requested_at is null then ? else ? end
where r.id = ?
and r.status = 'running'
and r.lease_epoch = ?
and r.claim_token = ?
and r.leader_epoch is ?
and r.commit_no = ? - 1
returning status, last_event_sequence, wakes, cancel_requested_at;

-- commit: suspend
update "durably_runs" as parent
set "wakes" = "parent"."wakes" + 1, "version" = "parent"."version" + 1, "updated_at" = {now}, "available_at" = case when "parent"."status" = 'pending'
and json_extract("parent"."waiting_for", '$.kind') = 'steps' then case when case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end is null
or case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end <= {now}
or "parent"."wakes" + 1 >= "parent"."wakes_wanted" then "parent"."created_at" else min(coalesce("parent"."available_at", case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end), case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end) end else "parent"."available_at" end
where parent.id in (
  select r.parent_run_id
  from "durably_runs" as r
  where r.id = ?
  and r.status = 'running'
  and r.lease_epoch = ?
  and r.claim_token = ?
  and r.leader_epoch is ?
  and r.commit_no = ? - 1
  and r.cancel_requested_at is not null
  union all
  select a.value
  from "durably_runs" as r
  cross join json_each(r.also_awaited_by) as a
  where r.id = ?
  and r.status = 'running'
  and r.lease_epoch = ?
  and r.claim_token = ?
  and r.leader_epoch is ?
  and r.commit_no = ? - 1
  and r.cancel_requested_at is not null
)
and parent.finished_at is null
returning id;

update "durably_runs" as r
set "version" = r.version + 1, "updated_at" = {now}, "commit_no" = ?, "crash_count" = case when ? = 1 then 0 else r.crash_count end, "current_step_index" = coalesce(?, r.current_step_index), "progress" = coalesce(?, r.progress), "heartbeat_at" = {now}, "waiting_for" = case when r.cancel_requested_at is null then ? else "r"."waiting_for" end, "available_at" = case when r.cancel_requested_at is null then case when r.wakes = ? then (
  select min(w.due_at)
  from (
    select s.due_at
    from "durably_steps" as s
    where s.run_id = r.id
    and s.status = 'waiting'
    and s.name in (
      select value
      from json_each(?)
    )
    union all
    select r.deadline_at
  ) as w
) when r.last_signal > ? then r.created_at else case when case when ? <> 0 then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)) end is null
or case when ? <> 0 then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)) end <= {now}
or r.wakes >= ? then r.created_at else min(coalesce((
      select min(w.due_at)
      from (
        select s.due_at
        from "durably_steps" as s
        where s.run_id = r.id
        and s.status = 'waiting'
        and s.name in (
          select value
          from json_each(?)
        )
        union all
        select r.deadline_at
      ) as w
    ), case when ? <> 0 then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)) end
  ), case when ? <> 0 then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)) end
) end end else "r"."available_at" end, "wakes_wanted" = case when r.cancel_requested_at is null then ? else "r"."wakes_wanted" end, "rest_until" = case when r.cancel_requested_at is null then case when ? <> 0 then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)) end else "r"."rest_until" end, "status" = case when r.cancel_requested_at is null then 'pending' else 'cancelled' end, "finished_at" = case when r.cancel_requested_at is null then null else {now} end, "concurrency_slot" = case when r.cancel_requested_at is null then case when r.hold_key_while_waiting = 1 then r.concurrency_slot end else null end, "owner_id" = null, "lease_until" = null, "last_event_sequence" = r.last_event_sequence + case when r.cancel_requested_at is null then ? else ? end
where r.id = ?
and r.status = 'running'
and r.lease_epoch = ?
and r.claim_token = ?
and r.leader_epoch is ?
and r.commit_no = ? - 1
returning status, last_event_sequence, wakes, cancel_requested_at;

-- renew
update "durably_runs" as r
set lease_until = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), heartbeat_at = {now}, updated_at = {now}, version = r.version + 1
from json_each(?) as lease
where r.id = json_extract(lease.value, '$[0]')
and r.status = 'running'
and r.lease_epoch = json_extract(lease.value, '$[1]')
and r.claim_token = json_extract(lease.value, '$[2]')
and r.leader_epoch is json_extract(lease.value, '$[3]')
returning id, lease_epoch, claim_token, wakes, cancel_requested_at;

-- recover
select {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
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
from "durably_runs" as r indexed by "durably_runs_running"
where r.status = 'running'
and (r.lease_until <= {now}
  or (r.heartbeat_at > {now}
    and r.lease_until > {now}
  )
)
and r.id not in (
  select value
  from json_each(?)
)
order by (r.heartbeat_at > {now}
  and r.lease_until > {now}
), r.crash_count >= 2, r.lease_until, r.id
limit ?;

update "durably_runs" as r
set status = ?, version = r.version + 1, updated_at = {now}, lease_epoch = r.lease_epoch + 1, crash_count = ?, claim_token = null, owner_id = null, lease_until = null, waiting_for = null, available_at = case when ? = 'pending' then case when ? = 0 then r.created_at else strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)) end else r.available_at end, concurrency_slot = case when ? = 'pending'
and r.hold_key_while_waiting = 1 then r.concurrency_slot end, finished_at = case when not (? = 'pending') then {now} end, error = coalesce(?, r.error), error_detail = coalesce(?, r.error_detail), last_event_sequence = r.last_event_sequence + ?
where r.id = ?
and r.status = 'running'
and r.version = ?
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- cancel
insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status = 'running';

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?, cancel_requested_at = coalesce(r.cancel_requested_at, {now})
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status = 'running'
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

update "durably_runs" as parent
set "wakes" = "parent"."wakes" + 1, "version" = "parent"."version" + 1, "updated_at" = {now}, "available_at" = case when "parent"."status" = 'pending'
and json_extract("parent"."waiting_for", '$.kind') = 'steps' then case when case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end is null
or case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end <= {now}
or "parent"."wakes" + 1 >= "parent"."wakes_wanted" then "parent"."created_at" else min(coalesce("parent"."available_at", case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end), case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end) end else "parent"."available_at" end
where parent.id in (
  select r.parent_run_id
  from "durably_runs" as r
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
  and r.status in ('pending', 'assigned', 'orphaned')
  and (r.parent_run_id is not null
    or r.also_awaited_by is not null
  )
  union all
  select a.value
  from "durably_runs" as r
  cross join json_each(r.also_awaited_by) as a
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
  and r.status in ('pending', 'assigned', 'orphaned')
  and (r.parent_run_id is not null
    or r.also_awaited_by is not null
  )
)
and parent.finished_at is null
returning id;

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status in ('pending', 'assigned', 'orphaned');

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?, cancel_requested_at = coalesce(r.cancel_requested_at, {now}), status = 'cancelled', finished_at = {now}, waiting_for = null, concurrency_slot = null, owner_id = null, lease_until = null, output = null
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status in ('pending', 'assigned', 'orphaned')
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- retry
select {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels
from "durably_runs" as r
where r.id = ?
and (? is null
  or r.tenant = ?
);

delete from "durably_steps"
where run_id = ?
and status = 'waiting'
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
  and r.status in ('failed', 'timed_out', 'cancelled')
);

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status in ('failed', 'timed_out', 'cancelled');

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?, status = 'pending', attempt = r.attempt + 1, attempt_base = r.attempt, crash_count = 0, lease_epoch = r.lease_epoch + 1, claim_token = null, owner_id = null, lease_until = null, concurrency_slot = null, available_at = r.created_at, waiting_for = null, output = null, error = null, error_detail = null, cancel_requested_at = null, deadline_at = null, started_at = null, finished_at = null
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status in ('failed', 'timed_out', 'cancelled')
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- retry: by somebody
-- as retry, 1

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select ?, {now}, ?, ?, r.tenant, 'run', r.id, json_object('status', r.status, 'attempt', r.attempt, 'waitingFor', json_extract(r.waiting_for, '$.kind'), 'cancelRequestedAt', r.cancel_requested_at)
from "durably_runs" as r
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status in ('failed', 'timed_out', 'cancelled');

-- as retry, 2

-- as retry, 4

update "durably_audit"
set after = (
  select json_object('status', r.status, 'attempt', r.attempt, 'waitingFor', json_extract(r.waiting_for, '$.kind'), 'cancelRequestedAt', r.cancel_requested_at)
  from "durably_runs" as r
  where r.id = ?
)
where id = ?;

-- park
insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status = 'pending';

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?, available_at = null, waiting_for = ?
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status = 'pending'
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- as retry, 1

-- unpark
insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status = 'pending'
and json_extract(r.waiting_for, '$.kind') = 'unpark';

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?, available_at = r.created_at, waiting_for = null
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status = 'pending'
and json_extract(r.waiting_for, '$.kind') = 'unpark'
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- as retry, 1

-- failParked
update "durably_runs" as parent
set "wakes" = "parent"."wakes" + 1, "version" = "parent"."version" + 1, "updated_at" = {now}, "available_at" = case when "parent"."status" = 'pending'
and json_extract("parent"."waiting_for", '$.kind') = 'steps' then case when case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end is null
or case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end <= {now}
or "parent"."wakes" + 1 >= "parent"."wakes_wanted" then "parent"."created_at" else min(coalesce("parent"."available_at", case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end), case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end) end else "parent"."available_at" end
where parent.id in (
  select r.parent_run_id
  from "durably_runs" as r
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
  and r.status = 'pending'
  and json_extract(r.waiting_for, '$.kind') = 'unpark'
  union all
  select a.value
  from "durably_runs" as r
  cross join json_each(r.also_awaited_by) as a
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
  and r.status = 'pending'
  and json_extract(r.waiting_for, '$.kind') = 'unpark'
)
and parent.finished_at is null
returning id;

-- as unpark, 1

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?, status = 'failed', finished_at = {now}, waiting_for = null, concurrency_slot = null, owner_id = null, lease_until = null, error = ?, error_detail = ?
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status = 'pending'
and json_extract(r.waiting_for, '$.kind') = 'unpark'
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- as retry, 1

-- remove
-- as retry, 1

delete from "durably_run_labels"
where exists (
  select 1
  from "durably_run_labels"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
)
returning name, value;

insert into "durably_archive_strays" (name, announced_at, is_given_up)
select r.log_ref, {now}, 1
from "durably_runs" as r
where r.log_ref is not null
and r.id = ?
and (? is null
  or r.tenant = ?
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
  where r.id = ?
  and (? is null
    or r.tenant = ?
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
  where r.id = ?
  and (? is null
    or r.tenant = ?
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
  where r.id = ?
  and (? is null
    or r.tenant = ?
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
  where r.id = ?
  and (? is null
    or r.tenant = ?
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
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
);

delete from "durably_runs" as r
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
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
      from "durably_runs" as r indexed by "durably_runs_finished"
      where r.finished_at is not null
      and r.status = 'failed'
      order by r.finished_at asc, r.id asc
      limit ?
    ) as walk
  ) as ends
  order by ends.finished_at asc, ends.id asc
  limit ?
)
select r.id, r.version, r.last_event_sequence + r.current_step_index as weight, r.finished_at as finished_at, not exists (
  select 1
  from "durably_runs" as parent
  where parent.id in (
    select r.parent_run_id as id
    where r.parent_run_id is not null
    union all
    select value as id
    from json_each(r.also_awaited_by)
  )
  and parent.finished_at is null
) as is_unneeded
from page as r
order by r.finished_at, r.id;

delete from "durably_run_labels"
where exists (
  select 1
  from "durably_run_labels"
)
and run_id in (
  select r.id
  from "durably_runs" as r
  where r.id in (
    select json_extract(seen.value, '$[0]')
    from json_each(?) as seen
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id in (
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_each(r.also_awaited_by)
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) in (
    select json_extract(seen.value, '$[0]') || '/' || json_extract(seen.value, '$[1]')
    from json_each(?) as seen
  )
)
returning name, value;

insert into "durably_archive_strays" (name, announced_at, is_given_up)
select r.log_ref, {now}, 1
from "durably_runs" as r
where r.log_ref is not null
and r.id in (
  select json_extract(seen.value, '$[0]')
  from json_each(?) as seen
)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and not exists (
  select 1
  from "durably_runs" as parent
  where parent.id in (
    select r.parent_run_id as id
    where r.parent_run_id is not null
    union all
    select value as id
    from json_each(r.also_awaited_by)
  )
  and parent.finished_at is null
)
and (r.id || '/' || r.version) in (
  select json_extract(seen.value, '$[0]') || '/' || json_extract(seen.value, '$[1]')
  from json_each(?) as seen
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
  where r.id in (
    select json_extract(seen.value, '$[0]')
    from json_each(?) as seen
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id in (
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_each(r.also_awaited_by)
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) in (
    select json_extract(seen.value, '$[0]') || '/' || json_extract(seen.value, '$[1]')
    from json_each(?) as seen
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
  where r.id in (
    select json_extract(seen.value, '$[0]')
    from json_each(?) as seen
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id in (
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_each(r.also_awaited_by)
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) in (
    select json_extract(seen.value, '$[0]') || '/' || json_extract(seen.value, '$[1]')
    from json_each(?) as seen
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
  where r.id in (
    select json_extract(seen.value, '$[0]')
    from json_each(?) as seen
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id in (
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_each(r.also_awaited_by)
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) in (
    select json_extract(seen.value, '$[0]') || '/' || json_extract(seen.value, '$[1]')
    from json_each(?) as seen
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
  where r.id in (
    select json_extract(seen.value, '$[0]')
    from json_each(?) as seen
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id in (
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_each(r.also_awaited_by)
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) in (
    select json_extract(seen.value, '$[0]') || '/' || json_extract(seen.value, '$[1]')
    from json_each(?) as seen
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
  where r.id in (
    select json_extract(seen.value, '$[0]')
    from json_each(?) as seen
  )
  and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
  and not exists (
    select 1
    from "durably_runs" as parent
    where parent.id in (
      select r.parent_run_id as id
      where r.parent_run_id is not null
      union all
      select value as id
      from json_each(r.also_awaited_by)
    )
    and parent.finished_at is null
  )
  and (r.id || '/' || r.version) in (
    select json_extract(seen.value, '$[0]') || '/' || json_extract(seen.value, '$[1]')
    from json_each(?) as seen
  )
);

delete from "durably_runs" as r
where r.id in (
  select json_extract(seen.value, '$[0]')
  from json_each(?) as seen
)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and not exists (
  select 1
  from "durably_runs" as parent
  where parent.id in (
    select r.parent_run_id as id
    where r.parent_run_id is not null
    union all
    select value as id
    from json_each(r.also_awaited_by)
  )
  and parent.finished_at is null
)
and (r.id || '/' || r.version) in (
  select json_extract(seen.value, '$[0]') || '/' || json_extract(seen.value, '$[1]')
  from json_each(?) as seen
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
      from "durably_runs" as r indexed by "durably_runs_job_finished"
      where r.finished_at is not null
      and r.job_name = ?
      and r.status = 'failed'
      order by r.status desc, r.finished_at desc, r.id desc
      limit ?
    ) as walk
    union all
    select *
    from (
      select r.finished_at, r.id
      from "durably_runs" as r indexed by "durably_runs_job_finished"
      where r.finished_at is not null
      and r.job_name = ?
      and r.status = 'completed'
      order by r.status desc, r.finished_at desc, r.id desc
      limit ?
    ) as walk
  ) as ends
  order by ends.finished_at desc, ends.id desc
  limit 1 offset ?
), page as materialized (
  select *
  from (
    select *
    from (
      select r.finished_at, r.id
      from "durably_runs" as r indexed by "durably_runs_job_finished"
      where r.finished_at is not null
      and r.job_name = ?
      and r.status = 'failed'
      and (r.finished_at) < (strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)))
      and (r.finished_at, r.id) <= ((
          select kept.finished_at
          from kept
        ), (
          select kept.id
          from kept
        )
      )
      order by r.status asc, r.finished_at asc, r.id asc
      limit ?
    ) as walk
    union all
    select *
    from (
      select r.finished_at, r.id
      from "durably_runs" as r indexed by "durably_runs_job_finished"
      where r.finished_at is not null
      and r.job_name = ?
      and r.status = 'completed'
      and (r.finished_at) < (strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)))
      and (r.finished_at, r.id) <= ((
          select kept.finished_at
          from kept
        ), (
          select kept.id
          from kept
        )
      )
      order by r.status asc, r.finished_at asc, r.id asc
      limit ?
    ) as walk
  ) as ends
  order by ends.finished_at asc, ends.id asc
  limit ?
)
select r.id, r.version, r.last_event_sequence + r.current_step_index as weight, r.finished_at as finished_at, not exists (
  select 1
  from "durably_runs" as parent
  where parent.id in (
    select r.parent_run_id as id
    where r.parent_run_id is not null
    union all
    select value as id
    from json_each(r.also_awaited_by)
  )
  and parent.finished_at is null
) as is_unneeded
from page
cross join "durably_runs" as r
where r.id = page.id
order by r.finished_at, r.id;

-- as purge, 3

-- as purge, 4

-- as purge, 5

-- as purge, 6

-- as purge, 7

-- as purge, 8

-- as purge, 9

-- as purge, 10

-- purge: by somebody
-- as retry, 1

-- as purge, 2

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select ?, {now}, ?, ?, ?, 'runs', '', json_object('runs', json(json_group_array(r.id)))
from "durably_runs" as r
where r.id in (
  select json_extract(seen.value, '$[0]')
  from json_each(?) as seen
)
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and not exists (
  select 1
  from "durably_runs" as parent
  where parent.id in (
    select r.parent_run_id as id
    where r.parent_run_id is not null
    union all
    select value as id
    from json_each(r.also_awaited_by)
  )
  and parent.finished_at is null
)
and (r.id || '/' || r.version) in (
  select json_extract(seen.value, '$[0]') || '/' || json_extract(seen.value, '$[1]')
  from json_each(?) as seen
)
having count(*) > 0;

-- as purge, 3

-- as purge, 4

-- as purge, 5

-- as purge, 6

-- as purge, 7

-- as purge, 8

-- as purge, 9

-- as purge, 10

-- signal
insert into "durably_signals" (run_id, position, name, payload, dedupe_key, created_at)
select r.id, r.wakes + 1, ?, ?, ?, {now}
from "durably_runs" as r
where r.id = ?
and (? is null
  or r.tenant = ?
)
and r.status in ('pending', 'assigned', 'running', 'orphaned')
on conflict
do nothing;

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id = ?
and exists (
  select 1
  from "durably_signals" as g
  where g.run_id = r.id
  and g.position = r.wakes + 1
);

update "durably_runs" as r
set "wakes" = "r"."wakes" + 1, "version" = "r"."version" + 1, "updated_at" = {now}, "available_at" = case when "r"."status" = 'pending'
and json_extract("r"."waiting_for", '$.kind') = 'steps' then "r"."created_at" else "r"."available_at" end, "last_signal" = "r"."wakes" + 1, last_event_sequence = r.last_event_sequence + ?
where r.id = ?
and exists (
  select 1
  from "durably_signals" as g
  where g.run_id = r.id
  and g.position = r.wakes + 1
)
returning wakes;

-- signal: by somebody
-- as signal, 1

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select ?, {now}, ?, ?, r.tenant, 'run', r.id, json_object('status', r.status, 'attempt', r.attempt, 'waitingFor', json_extract(r.waiting_for, '$.kind'), 'cancelRequestedAt', r.cancel_requested_at)
from "durably_runs" as r
where r.id = ?
and exists (
  select 1
  from "durably_signals" as g
  where g.run_id = r.id
  and g.position = r.wakes + 1
);

update "durably_audit"
set after = json_object('signal', ?)
where id = ?;

-- as signal, 3

-- fork
insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, case when ? is null then strftime('%Y-%m-%dT%H:%M:%fZ', coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = ?
    ), {now}
  ), printf('%+.3f seconds', ? / 1000.0)
) when ? < coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
) then coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
) else ? end, ?, ?, ?, ?, ?, ?, coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
), {now}
from "durably_runs" as r
where r.id = ?
on conflict
do nothing;

insert into "durably_steps" (id, run_id, lease_epoch, claim_token, "name", "index", "kind", "status", "attempt", "output", "wait_name", "due_at", "started_at", "completed_at")
select json_extract(c.value, '$[1]'), n.id, 0, '', "s"."name", "s"."index", "s"."kind", "s"."status", "s"."attempt", "s"."output", "s"."wait_name", "s"."due_at", "s"."started_at", "s"."completed_at"
from json_each(?) as c
join "durably_steps" as s on s.id = json_extract(c.value, '$[0]')
and s.run_id = ?
and s.status = 'completed'
join "durably_runs" as n on n.id = ?
where true
order by s."index", "s"."rowid"
on conflict
do nothing;

update "durably_runs"
set forked_from = ?, current_step_index = ?
where id = ?
and forked_from is null;

select {columns of r: runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_runs" as r
where r.id = ?;

-- fork: by somebody
-- as fork, 1

-- as fork, 2

-- as fork, 3

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before, after)
select ?, {now}, ?, ?, r.tenant, 'run', r.id, json_object('status', r.status, 'attempt', r.attempt, 'waitingFor', json_extract(r.waiting_for, '$.kind'), 'cancelRequestedAt', r.cancel_requested_at), json_object('run', ?)
from "durably_runs" as r
where r.id = ?;

-- as fork, 4

-- getRun
-- as retry, 1

-- getRuns
select {columns of r: runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_runs" as r indexed by "durably_runs_created"
order by r.created_at desc, r.id desc
limit ?;

-- getRuns: by status, job and tenant
select *
from (
  select 0 as way, r.created_at as created_at, r.id as id
  from "durably_runs" as r indexed by "durably_runs_of_tenant_job"
  where r.tenant <> ''
  and r.tenant = ?
  and r.job_name = ?
  order by r.created_at desc, r.id desc
  limit 1 offset 999
) as reached
union all
select *
from (
  select 1 as way, r.created_at as created_at, r.id as id
  from "durably_runs" as r indexed by "durably_runs_of_tenant_status"
  where r.tenant <> ''
  and r.tenant = ?
  and r.status = 'failed'
  order by r.created_at desc, r.id desc
  limit 1 offset 999
) as reached
union all
select *
from (
  select 2 as way, r.created_at as created_at, r.id as id
  from "durably_runs" as r indexed by "durably_runs_of_tenant"
  where r.tenant <> ''
  and r.tenant = ?
  order by r.created_at desc, r.id desc
  limit 1 offset 999
) as reached;

select {columns of r: runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from (
  select *
  from "durably_runs" as r indexed by "durably_runs_of_tenant_job"
  where r.tenant <> ''
  and r.tenant = ?
  and r.job_name = ?
) as "r"
where r.status = 'failed'
order by r.created_at desc, r.id desc
limit ?;

-- getRuns: by label
select {columns of r: runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_run_labels" as q indexed by "durably_run_labels_value"
cross join "durably_runs" as r
where q.name = ?
and q.value = ?
and r.id = q.run_id
order by q.created_at desc, q.run_id desc
limit ?;

-- getSteps
select {columns of s: steps}, case when s.due_at <= {now} then 1 else 0 end as is_due
from "durably_steps" as s
where s.run_id = ?
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
)
order by s."index", "s"."rowid";

-- counts
select r.status, count(*) as runs
from "durably_runs" as r
group by r.status
union all
select json_extract(r.waiting_for, '$.kind'), count(*) as runs
from "durably_runs" as r
where r.status = 'pending'
and json_extract(r.waiting_for, '$.kind') in ('retry', 'unpark')
group by json_extract(r.waiting_for, '$.kind');

-- nextDue
with recursive names (name) as (
  select (
    select min(r.job_name)
    from "durably_runs" as r indexed by "durably_runs_due"
    where r.status = 'pending'
  )
  union all
  select (
    select min(r.job_name)
    from "durably_runs" as r indexed by "durably_runs_due"
    where r.status = 'pending'
    and r.job_name > names.name
  )
  from names
  where names.name is not null
), due as (
  select names.name, (
    select case when r.available_at = r.created_at then min(r.available_at, {now}) else r.available_at end
    from "durably_runs" as r indexed by "durably_runs_due"
    where r.status = 'pending'
    and r.available_at is not null
    and r.job_name = names.name
    order by r.available_at
    limit 1
  ) as run_at
  from names
  where names.name is not null
)
select {now} as now, (
  select min(due.run_at)
  from due
  where due.name in (
    select value
    from json_each(?)
  )
) as run_at, (
  select json_group_array(due.name)
  from due
  where due.run_at <= {now}
  and due.name not in (
    select value
    from json_each(?)
  )
) as unknown_jobs, (
  select min(case when r.heartbeat_at > {now} then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', round((julianday(r.lease_until) - julianday(r.heartbeat_at)) * 86400000) / 1000.0)) else r.lease_until end)
  from "durably_runs" as r indexed by "durably_runs_running"
  where r.status = 'running'
) as lease_until;

-- getEvents
select {columns of e: run_events}
from "durably_run_events" as e
where e.run_id = ?
and e.seq > ?
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
)
order by e.seq
limit ?;

-- tail
select r.id, r.status, r.last_event_sequence, {columns of e: run_events}
from json_each(?) as c
cross join "durably_runs" as r
left join "durably_run_events" as e on e.run_id = r.id
and e.seq > json_extract(c.value, '$[1]')
and e.seq <= json_extract(c.value, '$[2]')
where r.id = json_extract(c.value, '$[0]')
order by r.id, e.seq;

-- tail: of much
select r.id, r.last_event_sequence
from json_each(?) as c
join "durably_runs" as r on r.id = json_extract(c.value, '$[0]');

-- as tail, 1

-- getLogs
select {columns of l: logs}, "l"."rowid" as place
from "durably_logs" as l
where l.run_id = ?
and "l"."rowid" > ?
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
)
order by "l"."rowid"
limit ?;

-- getLogs: after one
select {columns of l: logs}, "l"."rowid" as place
from "durably_logs" as l
where l.run_id = ?
and "l"."rowid" > (
  select "a"."rowid"
  from "durably_logs" as a
  where a.id = ?
)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
)
order by "l"."rowid"
limit ?;

-- findLogs
select {columns of l: logs}
from "durably_logs" as l
where l.id in (
  select value
  from json_each(?)
);

-- getUnread
select {columns of g: signals}
from "durably_signals" as g
where g.run_id = ?
and g.consumed_at is null
order by g.position;

-- limits: load
-- as claim: under limits, 6

-- limits: pause
insert into "durably_paused_jobs" (job_name, paused_at)
values (?, {now})
on conflict
do nothing;

-- limits: pause by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select ?, {now}, ?, ?, '', 'job', ?, json_object('paused', json(case when exists (
      select 1
      from "durably_paused_jobs" as j
      where j.job_name = ?
    ) then 'true' else 'false' end
  )
);

-- as limits: pause, 1

update "durably_audit"
set after = json_object('paused', json(case when exists (
      select 1
      from "durably_paused_jobs" as j
      where j.job_name = ?
    ) then 'true' else 'false' end
  )
)
where id = ?;

-- limits: resume
delete from "durably_paused_jobs"
where job_name = ?;

-- limits: paused
select job_name
from "durably_paused_jobs"
order by job_name;

-- debounce: enqueue
insert into "durably_debounced_runs" as d (tenant, job_name, key, run_id)
values (?, ?, ?, ?)
on conflict (tenant, job_name, key)
do update
set run_id = d.run_id;

update "durably_runs" as r
set payload = ?, version = r.version + 1, updated_at = {now}, available_at = case when ? is null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)) else min(strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at, printf('%+.3f seconds', ? / 1000.0))) end
where r.id = (
  select d.run_id
  from "durably_debounced_runs" as d
  where d.tenant = ?
  and d.job_name = ?
  and d.key = ?
)
and r.status = 'pending'
and r.attempt = 1
and r.started_at is null
and r.waiting_for is null
and (r.id = ?
  or not exists (
    select 1
    from "durably_runs" as own
    where own.id = ?
  )
);

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, case when ? is null then strftime('%Y-%m-%dT%H:%M:%fZ', coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = ?
    ), {now}
  ), printf('%+.3f seconds', ? / 1000.0)
) when ? < coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
) then coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
) else ? end, ?, ?, ?, ?, ?, ?, coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
), {now}
where not exists (
  select 1
  from "durably_debounced_runs" as d
  join "durably_runs" as r on r.id = d.run_id
  where d.tenant = ?
  and d.job_name = ?
  and d.key = ?
  and r.status = 'pending'
  and r.attempt = 1
  and r.started_at is null
  and r.waiting_for is null
)
on conflict
do nothing;

update "durably_debounced_runs" as d
set run_id = ?
where d.tenant = ?
and d.job_name = ?
and d.key = ?
and exists (
  select 1
  from "durably_runs" as own
  where own.id = ?
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
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_runs" as r
where r.id = ?
or r.id = (
  select d.run_id
  from "durably_debounced_runs" as d
  where d.tenant = ?
  and d.job_name = ?
  and d.key = ?
);

-- debounce: join
-- as debounce: enqueue, 1

update "durably_debounced_runs" as d
set run_id = ?
where d.tenant = ?
and d.job_name = ?
and d.key = ?
and not exists (
  select 1
  from "durably_runs" as own
  where own.id = ?
)
and not exists (
  select j.run_id
  from "durably_debounced_runs" as j
  where j.tenant = ?
  and j.job_name = ''
  and j.key = ?
)
and not exists (
  select 1
  from "durably_runs" as r
  where r.id = d.run_id
  and r.status = 'pending'
  and r.attempt = 1
  and r.started_at is null
  and r.waiting_for is null
  and (case when substr(r.payload, 1, 1) = '[' then json_array_length(r.payload) end) + json_array_length(?) <= ?
  and octet_length((substr(r.payload, 1, length(r.payload) - 1) || ',' || substr(?, 2))) <= ?
);

update "durably_runs" as r
set payload = (substr(r.payload, 1, length(r.payload) - 1) || ',' || substr(?, 2)), version = r.version + 1, updated_at = {now}, available_at = case when (case when substr(r.payload, 1, 1) = '[' then json_array_length(r.payload) end) + json_array_length(?) >= ? then min({now}, r.available_at) else r.available_at end
where r.id = (
  select d.run_id
  from "durably_debounced_runs" as d
  where d.tenant = ?
  and d.job_name = ?
  and d.key = ?
)
and not exists (
  select 1
  from "durably_runs" as own
  where own.id = ?
)
and not exists (
  select j.run_id
  from "durably_debounced_runs" as j
  where j.tenant = ?
  and j.job_name = ''
  and j.key = ?
);

insert into "durably_debounced_runs" (tenant, job_name, key, run_id)
select d.tenant, '', ?, d.run_id
from "durably_debounced_runs" as d
where d.tenant = ?
and d.job_name = ?
and d.key = ?
and d.run_id <> ?
and not exists (
  select 1
  from "durably_runs" as own
  where own.id = ?
)
and not exists (
  select j.run_id
  from "durably_debounced_runs" as j
  where j.tenant = ?
  and j.job_name = ''
  and j.key = ?
)
on conflict
do nothing;

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, case when ? is null then strftime('%Y-%m-%dT%H:%M:%fZ', coalesce((
      select f.created_at
      from "durably_runs" as f
      where f.id = ?
    ), {now}
  ), printf('%+.3f seconds', ? / 1000.0)
) when ? < coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
) then coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
) else ? end, ?, ?, ?, ?, ?, ?, coalesce((
    select f.created_at
    from "durably_runs" as f
    where f.id = ?
  ), {now}
), {now}
where not exists (
  select j.run_id
  from "durably_debounced_runs" as j
  where j.tenant = ?
  and j.job_name = ''
  and j.key = ?
)
on conflict
do nothing;

select {columns of r: runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "r"."id"
) as labels
from "durably_runs" as r
where r.id = coalesce((
    select j.run_id
    from "durably_debounced_runs" as j
    where j.tenant = ?
    and j.job_name = ''
    and j.key = ?
  ), ?
);

-- archiving: findLogged
with page as materialized (
  select r.id, r.version, r.finished_at
  from "durably_runs" as r indexed by "durably_runs_finished"
  where r.finished_at is not null
  and r.finished_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0))
  order by r.finished_at, r.id
  limit ?
)
select r.id, r.version, r.finished_at as finished_at, coalesce((
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
values (?, {now})
on conflict
do nothing;

-- archiving: refer
-- as retry, 1

update "durably_archive_strays"
set announced_at = announced_at
where name = ?;

insert into "durably_archive_strays" (name, announced_at, is_given_up)
select r.log_ref, {now}, 1
from "durably_runs" as r
where r.log_ref is not null
and r.id = ?
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and r.version = ?
and exists (
  select 1
  from "durably_archive_strays" as s
  where s.name = ?
  and s.is_given_up = 0
)
on conflict
do nothing;

update "durably_runs" as r
set log_ref = ?, version = r.version + 1, updated_at = {now}
where r.id = ?
and r.status in ('completed', 'failed', 'timed_out', 'cancelled')
and r.version = ?
and exists (
  select 1
  from "durably_archive_strays" as s
  where s.name = ?
  and s.is_given_up = 0
)
returning id;

delete from "durably_archive_strays"
where name = ?
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and r.log_ref = ?
);

-- archiving: getUnarchived
select {columns of l: logs}, "l"."rowid" as place
from "durably_logs" as l
where l.run_id = ?
and "l"."rowid" > coalesce((
    select "a"."rowid"
    from "durably_logs" as a
    where a.id = ?
  ), 0
)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and (? is null
    or r.tenant = ?
  )
)
order by "l"."rowid"
limit ?;

-- archiving: removeArchived
delete from "durably_logs"
where id in (
  select l.id
  from "durably_logs" as l
  where l.run_id = ?
  and "l"."rowid" <= (
    select "a"."rowid"
    from "durably_logs" as a
    where a.id = ?
  )
  order by "l"."rowid"
  limit ?
)
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and r.log_ref = ?
);

select 1
from "durably_logs" as l
where l.id = ?
and exists (
  select 1
  from "durably_runs" as r
  where r.id = ?
  and r.log_ref = ?
);

-- archiving: giveUp
update "durably_archive_strays"
set is_given_up = 1
where is_given_up = 0
and announced_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0));

select name
from "durably_archive_strays"
where is_given_up = 1
order by name
limit ?;

-- archiving: forget
delete from "durably_archive_strays"
where name in (
  select value
  from json_each(?)
);

-- audit: list
select "m"."at" as first, "m"."id" as second
from "durably_audit" as m indexed by "durably_audit_at"
where ("m"."at", "m"."id") < (?, ?)
order by "m"."at" desc, "m"."id" desc
limit 1 offset 999;

select {columns of m: audit}
from (
  select m.*
  from "durably_audit" as m indexed by "durably_audit_at"
  where ("m"."at", "m"."id") < (?, ?)
) as m
where "m"."actor" = ?
order by "m"."at" desc, "m"."id" desc
limit ?;

-- audit: purge
delete from "durably_audit"
where id in (
  select a.id
  from "durably_audit" as a
  where a.at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
  order by a.at, a.id
  limit ?
)
returning id;

-- statistics: ends
select {columns of statistics_place}
from "durably_statistics_place"
where id = 1;

select r.id, r.tenant, r.job_name, r.status, r.attempt_base, "r"."available_at" as "available_at", "r"."started_at" as "started_at", "r"."finished_at" as "finished_at"
from "durably_runs" as r indexed by "durably_runs_finished"
where r.finished_at is not null
and r.finished_at is not null
and r.finished_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0))
order by r.finished_at, r.id
limit ?;

-- statistics: fold
select {columns of s: statistics}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.tenantScope') as "tenantScope", json_extract(value, '$.jobScope') as "jobScope", json_extract(value, '$.hour') as "hour"
  from json_each(?)
) as t
join "durably_statistics" as s on s.tenant_scope = t."tenantScope"
and s.job_scope = t."jobScope"
and s.hour = t.hour;

insert into "durably_statistics_place" as s (id, finished_at, run_id, token)
values (1, ?, ?, ?)
on conflict (id)
do update
set finished_at = excluded.finished_at, run_id = excluded.run_id, token = excluded.token
where s.finished_at = ?
and s.run_id = ?
returning id;

insert into "durably_statistics" ({columns of statistics})
select "t"."tenantScope", "t"."jobScope", "t"."hour", "t"."started", "t"."completed", "t"."failed", "t"."timedOut", "t"."cancelled", "t"."durations", "t"."waits"
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.tenantScope') as "tenantScope", json_extract(value, '$.jobScope') as "jobScope", json_extract(value, '$.hour') as "hour", json_extract(value, '$.started') as "started", json_extract(value, '$.completed') as "completed", json_extract(value, '$.failed') as "failed", json_extract(value, '$.timedOut') as "timedOut", json_extract(value, '$.cancelled') as "cancelled", json_extract(value, '$.durations') as "durations", json_extract(value, '$.waits') as "waits"
  from json_each(?)
) as t
where exists (
  select 1
  from "durably_statistics_place" as s
  where s.id = 1
  and s.token = ?
)
on conflict (tenant_scope, job_scope, hour)
do update
set "started" = "excluded"."started", "completed" = "excluded"."completed", "failed" = "excluded"."failed", "timed_out" = "excluded"."timed_out", "cancelled" = "excluded"."cancelled", "durations" = "excluded"."durations", "waits" = "excluded"."waits";

-- statistics: hours
-- as statistics: ends, 1

select {columns of statistics}
from "durably_statistics"
where tenant_scope = ?
and job_scope = ?
and hour >= ?
and hour < ?
order by hour;

-- statistics: forget
delete from "durably_statistics"
where hour < ?;

-- settings: get
select {columns of settings}
from "durably_settings";

-- settings: set by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select ?, {now}, ?, ?, '', 'settings', '', (
  select json_group_object(name, json(value))
  from "durably_settings"
  where name in (
    select value
    from json_each(?)
  )
);

delete from "durably_settings"
where name in (
  select value
  from json_each(?)
);

insert into "durably_settings" (name, value, updated_at)
select "t"."name", "t"."value", {now}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.name') as "name", json_extract(value, '$.value') as "value"
  from json_each(?)
) as t
where true
on conflict (name)
do update
set value = excluded.value, updated_at = excluded.updated_at;

update "durably_audit"
set after = (
  select json_group_object(name, json(value))
  from "durably_settings"
  where name in (
    select value
    from json_each(?)
  )
)
where id = ?;

-- as settings: get, 1

-- cluster: getLead
select {columns of l: leaders}, case when l.lead_until <= {now} then 1 else 0 end as is_over
from "durably_leaders" as l
where l.name = ?;

-- cluster: lead
insert into "durably_leaders" as l (name, worker_id, epoch, lead_until)
values (?, ?, 1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)))
on conflict (name)
do update
set worker_id = excluded.worker_id, lead_until = excluded.lead_until, epoch = l.epoch + case when l.worker_id = ?
and l.lead_until > {now} then 0 else 1 end
where l.worker_id = ?
or l.lead_until <= {now}
returning epoch;

-- schedules: create
insert into "durably_schedules" ("id", "tenant", "name", "source", "job_name", "payload", "definition", "overlap", "fired_until", "due_at", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."name", "t"."source", "t"."jobName", "t"."payload", "t"."definition", "t"."overlap", {now}, {now}, {now}, {now}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.tenant') as "tenant", json_extract(value, '$.name') as "name", json_extract(value, '$.source') as "source", json_extract(value, '$.jobName') as "jobName", json_extract(value, '$.payload') as "payload", json_extract(value, '$.definition') as "definition", json_extract(value, '$.overlap') as "overlap"
  from json_each(?)
) as t
where true
on conflict
do nothing;

select {columns of s: schedules}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.tenant') as "tenant", json_extract(value, '$.name') as "name"
  from json_each(?)
) as t
join "durably_schedules" as s on s.tenant = t.tenant
and s.name = t.name;

-- schedules: change
update "durably_schedules"
set "paused_because" = ?, "fired_until" = {now}, "next_at" = null, "ended_at" = null, "due_at" = case when 1 = 0 then null else {now} end, "version" = version + 1, "updated_at" = {now}
where tenant = ?
and name = ?
returning {columns of schedules};

-- schedules: get
select {columns of s: schedules}, case when s.overlap = 'allow' then null else (
  select json_group_array(r.id || ' ' || coalesce(r.scheduled_for, ''))
  from "durably_runs" as r
  where r.schedule_id = s.id
  and r.schedule_id is not null
  and r.finished_at is null
) end as open_runs
from "durably_schedules" as s
where s.tenant = ?
and s.name = ?;

-- schedules: list
select {columns of m: schedules}
from "durably_schedules" as m indexed by "durably_schedules_name"
where tenant = ?
order by "m"."tenant" asc, "m"."name" asc
limit ?;

-- schedules: list, a page of a tenant with labels
select "m"."tenant" as first, "m"."name" as second
from "durably_schedules" as m indexed by "durably_schedules_name"
where tenant = ?
and ("m"."name") > (?)
order by "m"."tenant" asc, "m"."name" asc
limit 1 offset 999;

select {columns of m: schedules}
from (
  select m.*
  from "durably_schedules" as m indexed by "durably_schedules_name"
  where tenant = ?
  and ("m"."name") > (?)
) as m
where (
  select e.value
  from json_each(definition, '$.run.labels') as e
  where e.key = ?
) = ?
order by "m"."tenant" asc, "m"."name" asc
limit ?;

-- schedules: list, with labels
select "m"."tenant" as first, "m"."name" as second
from "durably_schedules" as m indexed by "durably_schedules_name"
order by "m"."tenant" asc, "m"."name" asc
limit 1 offset 999;

select {columns of m: schedules}
from (
  select m.*
  from "durably_schedules" as m indexed by "durably_schedules_name"
) as m
where (
  select e.value
  from json_each(definition, '$.run.labels') as e
  where e.key = ?
) = ?
and paused_because is null
and ended_at is not null
order by "m"."tenant" asc, "m"."name" asc;

-- schedules: due
select {now} as now, (
  select min(s.due_at)
  from "durably_schedules" as s
  where s.due_at <= {now}
) as due_at, (
  select min(s.due_at)
  from "durably_schedules" as s
  where s.due_at > {now}
) as next_at;

select {columns of s: schedules}, case when s.overlap = 'allow' then null else (
  select json_group_array(r.id || ' ' || coalesce(r.scheduled_for, ''))
  from "durably_runs" as r
  where r.schedule_id = s.id
  and r.schedule_id is not null
  and r.finished_at is null
) end as open_runs, {now} as now
from "durably_schedules" as s
where s.due_at <= {now}
order by s.due_at, s.id
limit ?;

-- schedules: fire
update "durably_schedules" as s
set "version" = s.version + 1, "fired_until" = "t"."firedUntil", "next_at" = "t"."nextAt", "due_at" = "t"."nextAt", "ended_at" = case when "t"."nextAt" is null then {now} end, "fired" = s.fired + "t"."fired", "missed" = s.missed + "t"."missed", "fire_token" = ?, "updated_at" = {now}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.scheduleId') as "scheduleId", json_extract(value, '$.version') as "version", json_extract(value, '$.firedUntil') as "firedUntil", json_extract(value, '$.nextAt') as "nextAt", json_extract(value, '$.fired') as "fired", json_extract(value, '$.missed') as "missed"
  from json_each(?)
) as t
where s.id = "t"."scheduleId"
and s.version = "t"."version"
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
)
returning id;

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", "t"."payload", 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then strftime('%Y-%m-%dT%H:%M:%fZ', {now}, printf('%+.3f seconds', "t"."afterMs" / 1000.0)) when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.tenant') as "tenant", json_extract(value, '$.jobName') as "jobName", json_extract(value, '$.jobVersion') as "jobVersion", json_extract(value, '$.payload') as "payload", json_extract(value, '$.idempotencyKey') as "idempotencyKey", json_extract(value, '$.concurrencyKey') as "concurrencyKey", json_extract(value, '$.concurrencyLimit') as "concurrencyLimit", json_extract(value, '$.holdKeyWhileWaiting') as "holdKeyWhileWaiting", json_extract(value, '$.priority') as "priority", json_extract(value, '$.startAt') as "startAt", json_extract(value, '$.afterMs') as "afterMs", json_extract(value, '$.timeoutMs') as "timeoutMs", json_extract(value, '$.parentRunId') as "parentRunId", json_extract(value, '$.scheduleId') as "scheduleId", json_extract(value, '$.scheduledFor') as "scheduledFor", json_extract(value, '$.traceParent') as "traceParent", json_extract(value, '$.eventCount') as "eventCount", json_extract(value, '$.cause') as "cause"
  from json_each(?)
) as t
where (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = "t"."cause"
) = ?
order by t.n
on conflict
do nothing
returning id;

-- schedules: fire, and have a run end
-- as schedules: fire, 1

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id in (
  select value
  from json_each(?)
)
and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
  select value
  from json_each(?)
) then 1 end = 1
and (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = r.schedule_id
) = ?
and case when r.status = 'running' then 1 end = 1;

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?, cancel_requested_at = coalesce(r.cancel_requested_at, {now})
where r.id in (
  select value
  from json_each(?)
)
and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
  select value
  from json_each(?)
) then 1 end = 1
and (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = r.schedule_id
) = ?
and case when r.status = 'running' then 1 end = 1
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

update "durably_runs" as parent
set "wakes" = "parent"."wakes" + 1, "version" = "parent"."version" + 1, "updated_at" = {now}, "available_at" = case when "parent"."status" = 'pending'
and json_extract("parent"."waiting_for", '$.kind') = 'steps' then case when case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end is null
or case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end <= {now}
or "parent"."wakes" + 1 >= "parent"."wakes_wanted" then "parent"."created_at" else min(coalesce("parent"."available_at", case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end), case when "parent"."heartbeat_at" <= {now} then "parent"."rest_until" end) end else "parent"."available_at" end
where parent.id in (
  select r.parent_run_id
  from "durably_runs" as r
  where r.id in (
    select value
    from json_each(?)
  )
  and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
    select value
    from json_each(?)
  ) then 1 end = 1
  and (
    select s.fire_token
    from "durably_schedules" as s
    where s.id = r.schedule_id
  ) = ?
  and case when r.status in ('pending', 'assigned', 'orphaned') then 1 end = 1
  and (r.parent_run_id is not null
    or r.also_awaited_by is not null
  )
  union all
  select a.value
  from "durably_runs" as r
  cross join json_each(r.also_awaited_by) as a
  where r.id in (
    select value
    from json_each(?)
  )
  and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
    select value
    from json_each(?)
  ) then 1 end = 1
  and (
    select s.fire_token
    from "durably_schedules" as s
    where s.id = r.schedule_id
  ) = ?
  and case when r.status in ('pending', 'assigned', 'orphaned') then 1 end = 1
  and (r.parent_run_id is not null
    or r.also_awaited_by is not null
  )
)
and parent.finished_at is null
returning id;

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id in (
  select value
  from json_each(?)
)
and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
  select value
  from json_each(?)
) then 1 end = 1
and (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = r.schedule_id
) = ?
and case when r.status in ('pending', 'assigned', 'orphaned') then 1 end = 1;

update "durably_runs" as r
set version = r.version + 1, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?, cancel_requested_at = coalesce(r.cancel_requested_at, {now}), status = 'cancelled', finished_at = {now}, waiting_for = null, concurrency_slot = null, owner_id = null, lease_until = null, output = null
where r.id in (
  select value
  from json_each(?)
)
and case when (r.id || ' ' || coalesce(r.schedule_id, '')) in (
  select value
  from json_each(?)
) then 1 end = 1
and (
  select s.fire_token
  from "durably_schedules" as s
  where s.id = r.schedule_id
) = ?
and case when r.status in ('pending', 'assigned', 'orphaned') then 1 end = 1
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- schedules: remove
delete from "durably_schedules"
where tenant = ?
and name = ?
returning id;

-- schedules: purge
delete from "durably_schedules"
where id in (
  select id
  from "durably_schedules"
  where ended_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
  and source is null
  order by id
  limit ?
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
)
returning id;

-- schedules: create, by somebody
-- as schedules: create, 1

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before, after)
select ?, {now}, ?, ?, s.tenant, 'schedule', s.name, null, json_object('jobName', s.job_name, 'definition', json(s.definition), 'overlap', s.overlap, 'pausedBecause', s.paused_because, 'version', s.version)
from "durably_schedules" as s
where s.id = ?;

-- as schedules: create, 2

-- schedules: change, by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select ?, {now}, ?, ?, s.tenant, 'schedule', s.name, json_object('jobName', s.job_name, 'definition', json(s.definition), 'overlap', s.overlap, 'pausedBecause', s.paused_because, 'version', s.version)
from "durably_schedules" as s
where tenant = ?
and name = ?;

update "durably_schedules"
set "due_at" = case when paused_because is not null then null else due_at end, "version" = version + 1, "updated_at" = {now}
where tenant = ?
and name = ?
returning {columns of schedules};

update "durably_audit"
set after = (
  select json_object('jobName', s.job_name, 'definition', json(s.definition), 'overlap', s.overlap, 'pausedBecause', s.paused_because, 'version', s.version)
  from "durably_schedules" as s
  where tenant = ?
  and name = ?
)
where id = ?;

-- schedules: start by hand
insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", "t"."payload", 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then strftime('%Y-%m-%dT%H:%M:%fZ', {now}, printf('%+.3f seconds', "t"."afterMs" / 1000.0)) when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.tenant') as "tenant", json_extract(value, '$.jobName') as "jobName", json_extract(value, '$.jobVersion') as "jobVersion", json_extract(value, '$.payload') as "payload", json_extract(value, '$.idempotencyKey') as "idempotencyKey", json_extract(value, '$.concurrencyKey') as "concurrencyKey", json_extract(value, '$.concurrencyLimit') as "concurrencyLimit", json_extract(value, '$.holdKeyWhileWaiting') as "holdKeyWhileWaiting", json_extract(value, '$.priority') as "priority", json_extract(value, '$.startAt') as "startAt", json_extract(value, '$.afterMs') as "afterMs", json_extract(value, '$.timeoutMs') as "timeoutMs", json_extract(value, '$.parentRunId') as "parentRunId", json_extract(value, '$.scheduleId') as "scheduleId", json_extract(value, '$.scheduledFor') as "scheduledFor", json_extract(value, '$.traceParent') as "traceParent", json_extract(value, '$.eventCount') as "eventCount", json_extract(value, '$.cause') as "cause"
  from json_each(?)
) as t
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
select ?, {now}, ?, ?, s.tenant, 'schedule', s.name, null, json_object('runs', json((
      select json_group_array(r.id)
      from "durably_runs" as r
      where r.id in (
        select value
        from json_each(?)
      )
    )
  )
)
from "durably_schedules" as s
where s.id = ?
and exists (
  select 1
  from "durably_runs" as r
  where r.id in (
    select value
    from json_each(?)
  )
);

-- schedules: remove, by somebody
-- as schedules: change, by somebody, 1

-- as schedules: remove, 1

-- as schedules: change, by somebody, 3

-- inbox: publish
insert into "durably_inbox" ("id", "tenant", "type", "payload", "dedupe_key", "available_at", "created_at")
select "t"."id", "t"."tenant", "t"."type", "t"."payload", "t"."dedupeKey", case when "t"."startAt" is null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', "t"."afterMs" / 1000.0)) when "t"."startAt" < {now} then {now} else "t"."startAt" end, {now}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.tenant') as "tenant", json_extract(value, '$.type') as "type", json_extract(value, '$.payload') as "payload", json_extract(value, '$.dedupeKey') as "dedupeKey", json_extract(value, '$.startAt') as "startAt", json_extract(value, '$.afterMs') as "afterMs"
  from json_each(?)
) as t
where true
order by t.n
on conflict
do nothing;

select {columns of m: inbox}
from "durably_inbox" as m
where m.id in (
  select t.id
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.tenant') as "tenant", json_extract(value, '$.dedupeKey') as "dedupeKey"
    from json_each(?)
  ) as t
  union
  select (
    select i.id
    from "durably_inbox" as i
    where i.tenant = t.tenant
    and i.dedupe_key = t."dedupeKey"
    and i.dedupe_key is not null
  )
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.tenant') as "tenant", json_extract(value, '$.dedupeKey') as "dedupeKey"
    from json_each(?)
  ) as t
);

-- inbox: subscribe
delete from "durably_subscriptions"
where job_name in (
  select value
  from json_each(?)
);

insert into "durably_subscriptions" (job_name, type, definition)
select "t"."jobName", "t"."type", "t"."definition"
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.jobName') as "jobName", json_extract(value, '$.type') as "type", json_extract(value, '$.definition') as "definition"
  from json_each(?)
) as t
where true
on conflict (type, job_name)
do update
set definition = excluded.definition;

-- inbox: waiting
select {now} as now, (
  select min(m.available_at)
  from "durably_inbox" as m
  where m.processed_at is null
  and m.available_at <= {now}
) as due_at, (
  select min(m.available_at)
  from "durably_inbox" as m
  where m.processed_at is null
  and m.available_at > {now}
) as next_at;

select {columns of m: inbox}
from "durably_inbox" as m
where m.processed_at is null
and m.available_at <= {now}
order by m.available_at, m.id
limit ?;

select {columns of w: subscriptions}
from "durably_subscriptions" as w
where w.type in (
  select value
  from json_each(?)
)
order by w.job_name;

-- inbox: deliver
update "durably_inbox" as m
set processed_at = {now}, wanted = "t"."wanted", deliver_token = ?
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.messageId') as "messageId", json_extract(value, '$.round') as "round", json_extract(value, '$.wanted') as "wanted"
  from json_each(?)
) as t
where m.id = "t"."messageId"
and case when m.processed_at is null then m.round end = "t"."round"
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
)
returning id;

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", "t"."payload", 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then strftime('%Y-%m-%dT%H:%M:%fZ', {now}, printf('%+.3f seconds', "t"."afterMs" / 1000.0)) when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.tenant') as "tenant", json_extract(value, '$.jobName') as "jobName", json_extract(value, '$.jobVersion') as "jobVersion", json_extract(value, '$.payload') as "payload", json_extract(value, '$.idempotencyKey') as "idempotencyKey", json_extract(value, '$.concurrencyKey') as "concurrencyKey", json_extract(value, '$.concurrencyLimit') as "concurrencyLimit", json_extract(value, '$.holdKeyWhileWaiting') as "holdKeyWhileWaiting", json_extract(value, '$.priority') as "priority", json_extract(value, '$.startAt') as "startAt", json_extract(value, '$.afterMs') as "afterMs", json_extract(value, '$.timeoutMs') as "timeoutMs", json_extract(value, '$.parentRunId') as "parentRunId", json_extract(value, '$.scheduleId') as "scheduleId", json_extract(value, '$.scheduledFor') as "scheduledFor", json_extract(value, '$.traceParent') as "traceParent", json_extract(value, '$.eventCount') as "eventCount", json_extract(value, '$.cause') as "cause"
  from json_each(?)
) as t
where (
  select m.deliver_token
  from "durably_inbox" as m
  where m.id = "t"."cause"
) = ?
order by t.n
on conflict
do nothing
returning id;

insert into "durably_gathered" (id, job_name, tenant, key, mode, max, payload, due_at, created_at, place)
select "t"."id", "t"."jobName", m.tenant, "t"."key", "t"."mode", "t"."max", m.payload, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', "t"."waitMs" / 1000.0)), {now}, t.n
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.messageId') as "messageId", json_extract(value, '$.jobName') as "jobName", json_extract(value, '$.key') as "key", json_extract(value, '$.mode') as "mode", json_extract(value, '$.max') as "max", json_extract(value, '$.waitMs') as "waitMs"
  from json_each(?)
) as t
join "durably_inbox" as m on m.id = t."messageId"
and m.deliver_token = ?
where true
on conflict
do nothing;

-- inbox: ripe
select {now} as now, min(case when (r.due_at <= {now}
    or (r.mode = 'all'
      and r.members >= r.max
    )
  ) then null else r.due_at end
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
  limit ?
) as r on r.job_name = g.job_name
and r.tenant = g.tenant
and r.key = g.key
order by g.created_at, g.place, g.id;

select {columns of w: subscriptions}
from "durably_subscriptions" as w
where w.job_name in (
  select value
  from json_each(?)
)
order by w.job_name, w.type;

-- inbox: release
update "durably_gathered"
set release_token = ?
where id in (
  select value
  from json_each(?)
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
)
returning id;

insert into "durably_runs" ("id", "tenant", "job_name", "job_version", "payload", "status", "idempotency_key", "concurrency_key", "concurrency_limit", "hold_key_while_waiting", "priority", "available_at", "timeout_ms", "parent_run_id", "schedule_id", "scheduled_for", "trace_parent", "last_event_sequence", "created_at", "updated_at")
select "t"."id", "t"."tenant", "t"."jobName", "t"."jobVersion", "t"."payload", 'pending', "t"."idempotencyKey", "t"."concurrencyKey", "t"."concurrencyLimit", "t"."holdKeyWhileWaiting", "t"."priority", case when "t"."startAt" is null then strftime('%Y-%m-%dT%H:%M:%fZ', {now}, printf('%+.3f seconds', "t"."afterMs" / 1000.0)) when "t"."startAt" < {now} then {now} else "t"."startAt" end, "t"."timeoutMs", "t"."parentRunId", "t"."scheduleId", "t"."scheduledFor", "t"."traceParent", "t"."eventCount", {now}, {now}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.tenant') as "tenant", json_extract(value, '$.jobName') as "jobName", json_extract(value, '$.jobVersion') as "jobVersion", json_extract(value, '$.payload') as "payload", json_extract(value, '$.idempotencyKey') as "idempotencyKey", json_extract(value, '$.concurrencyKey') as "concurrencyKey", json_extract(value, '$.concurrencyLimit') as "concurrencyLimit", json_extract(value, '$.holdKeyWhileWaiting') as "holdKeyWhileWaiting", json_extract(value, '$.priority') as "priority", json_extract(value, '$.startAt') as "startAt", json_extract(value, '$.afterMs') as "afterMs", json_extract(value, '$.timeoutMs') as "timeoutMs", json_extract(value, '$.parentRunId') as "parentRunId", json_extract(value, '$.scheduleId') as "scheduleId", json_extract(value, '$.scheduledFor') as "scheduledFor", json_extract(value, '$.traceParent') as "traceParent", json_extract(value, '$.eventCount') as "eventCount", json_extract(value, '$.cause') as "cause"
  from json_each(?)
) as t
where "t"."cause" in (
  select "t"."cause"
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.cause') as "cause", json_extract(value, '$.wanted') as "wanted"
    from json_each(?)
  ) as t
  join "durably_gathered" as g on g.id = "t"."id"
  and g.release_token = ?
  group by "t"."cause"
  having count(*) = min("t"."wanted")
)
order by t.n
on conflict
do nothing
returning id;

delete from "durably_gathered"
where release_token = ?
and id in (
  select "t"."id"
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.cause') as "cause", json_extract(value, '$.wanted') as "wanted"
    from json_each(?)
  ) as t
  where "t"."cause" in (
    select "t"."cause"
    from (
      select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.cause') as "cause", json_extract(value, '$.wanted') as "wanted"
      from json_each(?)
    ) as t
    join "durably_gathered" as g on g.id = "t"."id"
    and g.release_token = ?
    group by "t"."cause"
    having count(*) = min("t"."wanted")
  )
);

-- inbox: list
select {columns of m: inbox}
from "durably_inbox" as m indexed by "durably_inbox_created"
order by "m"."created_at" asc, "m"."id" asc
limit ?;

-- inbox: counts
select "m"."created_at" as first, "m"."id" as second
from "durably_inbox" as m indexed by "durably_inbox_created"
order by "m"."created_at" asc, "m"."id" asc
limit 1 offset 999;

select coalesce(sum(case when processed_at is null then 1 else 0 end), 0) as "waiting", coalesce(sum(case when processed_at is not null then 1 else 0 end), 0) as "processed", coalesce(sum(case when (processed_at is not null
      and wanted = 0
    ) then 1 else 0 end
  ), 0
) as "unwanted"
from "durably_inbox" as m indexed by "durably_inbox_created";

-- inbox: replay
select "m"."created_at" as first, "m"."id" as second
from "durably_inbox" as m indexed by "durably_inbox_created"
order by "m"."created_at" desc, "m"."id" desc
limit 1;

select "m"."created_at" as first, "m"."id" as second, m.id, m.round, case when processed_at is not null then 1 else 0 end as is_found
from "durably_inbox" as m indexed by "durably_inbox_created"
where ("m"."created_at", "m"."id") <= (?, ?)
order by "m"."created_at" asc, "m"."id" asc
limit ?;

update "durably_inbox" as m
set processed_at = null, wanted = 0, round = m.round + 1
where m.id in (
  select t.id
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.round') as "round"
    from json_each(?)
  ) as t
)
and (m.id || '/' || m.round) in (
  select t.id || '/' || t.round
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.round') as "round"
    from json_each(?)
  ) as t
)
returning id;

-- inbox: replay, by somebody
-- as inbox: replay, 1

select "m"."created_at" as first, "m"."id" as second, m.id, m.round, case when +type in (
  select value
  from json_each(?)
)
and processed_at is not null then 1 else 0 end as is_found
from "durably_inbox" as m indexed by "durably_inbox_created"
where ("m"."created_at", "m"."id") <= (?, ?)
order by "m"."created_at" asc, "m"."id" asc
limit ?;

insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before, after)
select ?, {now}, ?, ?, ?, 'messages', '', null, json_object('messages', count(*), 'of', json(?))
from (
  select 1
  from "durably_inbox" as m
  where m.id in (
    select t.id
    from (
      select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.round') as "round"
      from json_each(?)
    ) as t
  )
  and (m.id || '/' || m.round) in (
    select t.id || '/' || t.round
    from (
      select json_extract(value, '$.n') as "n", json_extract(value, '$.id') as "id", json_extract(value, '$.round') as "round"
      from json_each(?)
    ) as t
  )
) as m
having count(*) > 0;

-- as inbox: replay, 3

-- inbox: purge
delete from "durably_inbox"
where id in (
  select id
  from "durably_inbox"
  where processed_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
  order by processed_at
  limit ?
)
returning id;

-- inbox: purge, by the leader
delete from "durably_inbox"
where id in (
  select id
  from "durably_inbox"
  where processed_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
  order by processed_at
  limit ?
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
)
returning id;

-- inbox: purge, by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select ?, {now}, ?, ?, '', 'messages', '', json_object('messages', json(json_group_array(m.id)))
from (
  select id
  from "durably_inbox"
  where processed_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
  order by processed_at
  limit ?
) as m
having count(*) > 0;

delete from "durably_inbox"
where id in (
  select value
  from json_each(json_extract((
        select a.before
        from "durably_audit" as a
        where a.id = ?
      ), '$.messages'
    )
  )
)
returning id;

-- inbox: forget
delete from "durably_subscriptions"
where job_name = ?;

-- inbox: forget, by somebody
insert into "durably_audit" (id, at, actor, action, tenant, target_kind, target, before)
select ?, {now}, ?, ?, '', 'job', ?, json_object('on', json(json_group_object(w.type, json(w.definition))))
from (
  select type, definition
  from "durably_subscriptions"
  where job_name = ?
) as w
having count(*) > 0;

-- as inbox: forget, 1

-- cluster: resign
update "durably_leaders" as l
set lead_until = {now}
where l.name = ?
and l.worker_id = ?
and l.epoch = ?;

-- placement: beat
insert into "durably_workers" ({columns of workers})
values (?, ?, ?, ?, ?, ?, {now}, {now}, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)))
on conflict (worker_id)
do update
set "presence" = "excluded"."presence", "capacity" = "excluded"."capacity", "placed_jobs" = "excluded"."placed_jobs", "labels" = "excluded"."labels", "code_version" = "excluded"."code_version", "last_beat_at" = "excluded"."last_beat_at", "alive_until" = "excluded"."alive_until";

-- placement: noteJobs
insert into "durably_jobs" (name, version, code_version, options, last_seen_at)
select "t"."name", "t"."jobVersion", ?, "t"."options", {now}
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.name') as "name", json_extract(value, '$.jobVersion') as "jobVersion", json_extract(value, '$.options') as "options"
  from json_each(?)
) as t
where true
on conflict (name, version, code_version)
do update
set options = excluded.options, last_seen_at = excluded.last_seen_at;

-- placement: getWorkers
select {columns of w: workers}, case when (presence <> 'detached'
  and alive_until > {now}
) then 1 else 0 end as is_alive, (
  select count(*)
  from "durably_runs" as r indexed by "durably_runs_running"
  where r.status = 'running'
  and r.owner_id = worker_id
) as running, (
  select count(*)
  from "durably_runs" as r indexed by "durably_runs_assigned"
  where r.status = 'assigned'
  and r.assigned_worker_id = worker_id
) as assigned, case when exists (
  select 1 as held
  where (
    select max(r.crash_count)
    from "durably_runs" as r indexed by "durably_runs_running"
    where r.status = 'running'
    and r.owner_id = worker_id
  ) >= 2
  or (
    select max(r.crash_count)
    from "durably_runs" as r indexed by "durably_runs_assigned"
    where r.status = 'assigned'
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
    from "durably_runs" as r indexed by "durably_runs_placing"
    where r.status = 'pending'
    and r.tenant <> ''
    and r.job_name = t."jobName"
    and r.tenant > t.tenant
    order by r.tenant
    limit 1
  ), 1
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.jobName') as "jobName", json_extract(value, '$.tenant') as "tenant"
    from json_each(?)
  ) as t
  union all
  select w.job_name, (
    select r.tenant
    from "durably_runs" as r indexed by "durably_runs_placing"
    where r.status = 'pending'
    and r.tenant <> ''
    and r.job_name = w.job_name
    and r.tenant > w.tenant
    order by r.tenant
    limit 1
  ), w.nth + 1
  from walk as w
  where w.tenant is not null
  and w.nth <= ?
)
select job_name, tenant, nth
from walk
where tenant is not null
order by job_name, nth;

with found as (
  select h.id
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.jobName') as "jobName", json_extract(value, '$.tenant') as "tenant"
    from json_each(?)
  ) as t
  cross join "durably_runs" as h
  where h.rowid in (
    select r.rowid
    from "durably_runs" as r indexed by "durably_runs_placing"
    where r.status = 'pending'
    and r.tenant <> ''
    and r.job_name = t."jobName"
    and r.tenant = t.tenant
    and (r.available_at <= max({now}, (
          select l.created_at
          from "durably_runs" as l indexed by "durably_runs_created"
          order by l.created_at desc
          limit 1
        )
      )
      and (r.available_at <= {now}
        or r.available_at = r.created_at
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
    and +r.job_name not in (
      select q.job_name
      from "durably_paused_jobs" as q
    )
    and (r.crash_count < 2
      or +r.job_name in (
        select value
        from json_each(?)
      )
    )
    order by r.priority desc, r.available_at, r.id
    limit ?
  )
  union all
  select *
  from (
    select r.id
    from "durably_runs" as r indexed by "durably_runs_claim"
    where r.status = 'pending'
    and r.tenant = ''
    and 1
    and +r.job_name in (
      select value
      from json_each(?)
    )
    and (r.available_at <= max({now}, (
          select l.created_at
          from "durably_runs" as l indexed by "durably_runs_created"
          order by l.created_at desc
          limit 1
        )
      )
      and (r.available_at <= {now}
        or r.available_at = r.created_at
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
    and +r.job_name not in (
      select q.job_name
      from "durably_paused_jobs" as q
    )
    and (r.crash_count < 2
      or +r.job_name in (
        select value
        from json_each(?)
      )
    )
    order by r.priority desc, r.available_at, r.id
    limit ?
  ) as front
  union all
  select *
  from (
    select r.id
    from "durably_runs" as r indexed by "durably_runs_orphaned"
    where r.status = 'orphaned'
    and +r.job_name in (
      select value
      from json_each(?)
    )
    and (r.available_at <= max({now}, (
          select l.created_at
          from "durably_runs" as l indexed by "durably_runs_created"
          order by l.created_at desc
          limit 1
        )
      )
      and (r.available_at <= {now}
        or r.available_at = r.created_at
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
    and +r.job_name not in (
      select q.job_name
      from "durably_paused_jobs" as q
    )
    and (r.crash_count < 2
      or +r.job_name in (
        select value
        from json_each(?)
      )
    )
    order by r.priority desc, r.available_at, r.id
    limit ?
  ) as lost
)
select r.id, r.version, r.job_name, r.tenant, r.priority, r.available_at as available_at, r.crash_count, r.concurrency_key, r.concurrency_slot, r.concurrency_limit - (
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
  from "durably_runs" as r indexed by "durably_runs_running"
  where r.status = 'running'
  and +r.job_name in (
    select value
    from json_each(?)
  )
  union all
  select r.tenant
  from "durably_runs" as r indexed by "durably_runs_assigned"
  where r.status = 'assigned'
  and +r.job_name in (
    select value
    from json_each(?)
  )
) as h
group by h.tenant;

-- placement: assign
insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id = ?
and (r.status || '') in ('pending', 'orphaned')
and r.version = ?
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
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
set "status" = 'assigned', "version" = r.version + 1, "assignments" = r.assignments + 1, "assigned_worker_id" = "t"."workerId", "assigned_at" = {now}, "leader_epoch" = ?, "waiting_for" = null, "updated_at" = {now}, "last_event_sequence" = r.last_event_sequence + "t"."eventCount"
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.runId') as "runId", json_extract(value, '$.version') as "version", json_extract(value, '$.workerId') as "workerId", json_extract(value, '$.eventCount') as "eventCount"
  from json_each(?)
) as t
where r.id = "t"."runId"
and (r.status || '') in ('pending', 'orphaned')
and r.version = "t"."version"
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
)
and (r.concurrency_key is null
  or r.concurrency_slot is not null
)
returning id;

update "durably_runs" as r
set "status" = 'assigned', "version" = r.version + 1, "assignments" = r.assignments + 1, "assigned_worker_id" = ?, "assigned_at" = {now}, "leader_epoch" = ?, "waiting_for" = null, "updated_at" = {now}, "last_event_sequence" = r.last_event_sequence + ?, "concurrency_slot" = case when not exists (
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
where r.id = ?
and (r.status || '') in ('pending', 'orphaned')
and r.version = ?
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
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
returning id;

-- placement: assigned
select one.is_led, r.id, r.version, r.job_name, r.crash_count
from (
  select case when exists (
    select 1
    from "durably_leaders" as l
    where l.name = 'leader'
    and l.lead_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -30000 / 1000.0))
  ) then 1 else 0 end as is_led
) as one
left join (
  select r.id, r.version, r.job_name, r.crash_count, r.priority, r.available_at
  from "durably_runs" as r indexed by "durably_runs_assigned"
  where r.status = 'assigned'
  and r.assigned_worker_id = ?
  order by r.priority desc, r.available_at, r.id
  limit ?
) as r on 1 = 1
order by r.priority desc, r.available_at, r.id;

-- placement: start
insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id in (
  select t."runId"
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.runId') as "runId", json_extract(value, '$.version') as "version"
    from json_each(?)
  ) as t
)
and (r.status || '') = 'assigned'
and r.assigned_worker_id = ?
and r.version = (
  select t.version
  from (
    select json_extract(value, '$.n') as "n", json_extract(value, '$.runId') as "runId", json_extract(value, '$.version') as "version"
    from json_each(?)
  ) as t
  where t."runId" = r.id
);

update "durably_runs" as r
set status = 'running', version = r.version + 1, lease_epoch = r.lease_epoch + 1, claim_token = ?, owner_id = ?, lease_until = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', ? / 1000.0)), leader_epoch = r.leader_epoch, commit_no = 0, concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, null) end, waiting_for = null, deadline_at = case when r.deadline_at is null
and r.timeout_ms is not null then strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', r.timeout_ms / 1000.0)) else r.deadline_at end, started_at = coalesce(r.started_at, {now}), heartbeat_at = {now}, updated_at = {now}, last_event_sequence = r.last_event_sequence + ?
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.runId') as "runId", json_extract(value, '$.version') as "version"
  from json_each(?)
) as t
where r.id = t."runId"
and (r.status || '') = 'assigned'
and r.assigned_worker_id = ?
and r.version = t.version
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
  from "durably_run_labels" as l
  where l.run_id = "id"
) as labels;

-- placement: decline
-- as placement: start, 1

update "durably_runs" as r
set status = 'orphaned', version = r.version + 1, updated_at = {now}, concurrency_slot = case when r.hold_key_while_waiting = 1
and r.started_at is not null then r.concurrency_slot end, last_event_sequence = r.last_event_sequence + ?
from (
  select json_extract(value, '$.n') as "n", json_extract(value, '$.runId') as "runId", json_extract(value, '$.version') as "version"
  from json_each(?)
) as t
where r.id = t."runId"
and (r.status || '') = 'assigned'
and r.assigned_worker_id = ?
and r.version = t.version
returning id;

-- placement: orphan
select r.id
from "durably_runs" as r
where r.status = 'assigned'
and (r.assigned_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
  or (r.assigned_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
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
limit ?;

insert into "durably_run_events" (run_id, seq, event_type, payload, created_at)
select r.id, r.last_event_sequence + ?, ?, ?, {now}
from "durably_runs" as r
where r.id in (
  select value
  from json_each(?)
)
and r.status = 'assigned'
and (r.assigned_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
  or (r.assigned_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
    and not exists (
      select 1
      from "durably_workers" as w
      where w.worker_id = r.assigned_worker_id
      and w.presence <> 'detached'
      and w.alive_until > {now}
    )
  )
)
and case when ? = 1 then not exists (
  select 1
  from "durably_leaders" as l
  where l.name = 'leader'
  and l.lead_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -30000 / 1000.0))
) else exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
) end;

update "durably_runs" as r
set status = 'orphaned', version = r.version + 1, updated_at = {now}, concurrency_slot = case when r.hold_key_while_waiting = 1
and r.started_at is not null then r.concurrency_slot end, last_event_sequence = r.last_event_sequence + ?
where r.id in (
  select value
  from json_each(?)
)
and r.status = 'assigned'
and (r.assigned_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
  or (r.assigned_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
    and not exists (
      select 1
      from "durably_workers" as w
      where w.worker_id = r.assigned_worker_id
      and w.presence <> 'detached'
      and w.alive_until > {now}
    )
  )
)
and case when ? = 1 then not exists (
  select 1
  from "durably_leaders" as l
  where l.name = 'leader'
  and l.lead_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -30000 / 1000.0))
) else exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
) end
returning {columns of runs}, (
  select json_group_object("l"."name", "l"."value")
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
  limit ?
)
and r.status = 'orphaned'
and not exists (
  select 1
  from "durably_leaders" as l
  where l.name = 'leader'
  and l.lead_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -30000 / 1000.0))
)
returning id;

-- placement: forgetWorkers
delete from "durably_workers"
where last_beat_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
and not (presence <> 'detached'
  and alive_until > {now}
)
and not exists (
  select 1
  from "durably_runs" as r indexed by "durably_runs_running"
  where r.status = 'running'
  and r.owner_id = worker_id
)
and not exists (
  select 1
  from "durably_runs" as r indexed by "durably_runs_assigned"
  where r.status = 'assigned'
  and r.assigned_worker_id = worker_id
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
)
returning worker_id;

delete from "durably_jobs" as j
where j.last_seen_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', (- ?) / 1000.0))
and not exists (
  select 1
  from "durably_workers" as w
  where coalesce(w.code_version, '') = j.code_version
)
and exists (
  select 1
  from "durably_leaders" as l
  where l.name = ?
  and l.worker_id = ?
  and l.epoch = ?
);
