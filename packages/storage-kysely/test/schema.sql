CREATE TABLE "durably_archive_strays" ("name" text not null primary key,
  "announced_at" text not null,
  "is_given_up" integer default 0 not null) strict, without rowid;

CREATE TABLE "durably_audit" ("id" text not null primary key,
  "at" text not null,
  "tenant" text not null,
  "actor" text not null,
  "action" text not null,
  "target_kind" text not null,
  "target" text not null,
  "before" text,
  "after" text) strict, without rowid;

CREATE INDEX "durably_audit_at" on "durably_audit" ("at",
  "id");

CREATE INDEX "durably_audit_target" on "durably_audit" ("target",
  "at",
  "id");

CREATE TABLE "durably_debounced_runs" ("tenant" text not null,
  "job_name" text not null,
  "key" text not null,
  "run_id" text not null, constraint "durably_debounced_runs_key" primary key ("tenant",
  "job_name",
  "key")) strict, without rowid;

CREATE INDEX "durably_debounced_runs_run" on "durably_debounced_runs" ("run_id");

CREATE TABLE "durably_gathered" ("id" text not null primary key,
  "job_name" text not null,
  "tenant" text not null,
  "key" text not null,
  "mode" text not null,
  "max" integer not null,
  "payload" text,
  "due_at" text not null,
  "created_at" text not null,
  "place" integer not null,
  "release_token" text) strict, without rowid;

CREATE TABLE "durably_inbox" ("id" text not null primary key,
  "tenant" text not null,
  "type" text not null,
  "payload" text,
  "dedupe_key" text,
  "available_at" text not null,
  "created_at" text not null,
  "processed_at" text,
  "wanted" integer default 0 not null,
  "round" integer default 0 not null,
  "deliver_token" text) strict, without rowid;

CREATE INDEX "durably_inbox_created" on "durably_inbox" ("created_at",
  "id");

CREATE UNIQUE INDEX "durably_inbox_dedupe" on "durably_inbox" ("tenant",
  "dedupe_key") where dedupe_key is not null;

CREATE INDEX "durably_inbox_processed" on "durably_inbox" ("processed_at",
  "created_at");

CREATE INDEX "durably_inbox_waiting" on "durably_inbox" ("available_at",
  "id") where processed_at is null;

CREATE TABLE "durably_job_starts" ("job_name" text not null,
  "nth" integer not null,
  "started_at" text not null, constraint "durably_job_starts_key" primary key ("job_name",
  "nth")) strict, without rowid;

CREATE TABLE "durably_jobs" ("name" text not null,
  "version" text not null,
  "code_version" text not null,
  "options" text not null,
  "last_seen_at" text not null, constraint "durably_jobs_key" primary key ("name",
  "version",
  "code_version")) strict, without rowid;

CREATE TABLE "durably_leaders" ("name" text not null primary key,
  "worker_id" text not null,
  "epoch" integer not null,
  "lead_until" text not null) strict, without rowid;

CREATE TABLE "durably_logs" ("id" text not null primary key,
  "run_id" text not null,
  "step_name" text,
  "level" text not null,
  "message" text not null,
  "data" text,
  "timestamp" text not null) strict;

CREATE INDEX "durably_logs_written" on "durably_logs" ("run_id");

CREATE TABLE "durably_paused_jobs" ("job_name" text not null primary key,
  "paused_at" text not null) strict, without rowid;

CREATE TABLE "durably_run_events" ("run_id" text not null,
  "seq" integer not null,
  "event_type" text not null,
  "payload" text not null,
  "created_at" text not null, constraint "durably_run_events_key" primary key ("run_id",
  "seq")) strict, without rowid;

CREATE TABLE "durably_run_labels" ("run_id" text not null,
  "name" text not null,
  "value" text not null,
  "tenant" text,
  "created_at" text, constraint "durably_run_labels_key" primary key ("run_id",
  "name")) strict, without rowid;

CREATE INDEX "durably_run_labels_tenant_value" on "durably_run_labels" ("tenant",
  "name",
  "value",
  "created_at",
  "run_id");

CREATE INDEX "durably_run_labels_value" on "durably_run_labels" ("name",
  "value",
  "created_at",
  "run_id");

CREATE TABLE "durably_runs" ("id" text not null primary key,
  "tenant" text default '' not null,
  "job_name" text not null,
  "job_version" text,
  "payload" text,
  "status" text not null,
  "idempotency_key" text,
  "concurrency_key" text,
  "concurrency_limit" integer default 1 not null,
  "concurrency_slot" integer,
  "hold_key_while_waiting" integer default 0 not null,
  "priority" integer default 0 not null,
  "available_at" text,
  "waiting_for" text,
  "current_step_index" integer default 0 not null,
  "progress" text,
  "output" text,
  "error" text,
  "error_detail" text,
  "version" integer default 1 not null,
  "attempt" integer default 1 not null,
  "attempt_base" integer default 0 not null,
  "crash_count" integer default 0 not null,
  "assignments" integer default 0 not null,
  "owner_id" text,
  "claim_token" text,
  "lease_epoch" integer default 0 not null,
  "lease_until" text,
  "leader_epoch" integer,
  "commit_no" integer default 0 not null,
  "wakes" integer default 0 not null,
  "last_event_sequence" integer default 0 not null,
  "cancel_requested_at" text,
  "timeout_ms" integer,
  "deadline_at" text,
  "parent_run_id" text,
  "schedule_id" text,
  "scheduled_for" text,
  "heartbeat_at" text,
  "created_at" text not null,
  "updated_at" text not null,
  "started_at" text,
  "finished_at" text,
  "assigned_worker_id" text,
  "assigned_at" text,
  "log_ref" text,
  "wakes_wanted" integer default 0 not null,
  "rest_until" text,
  "last_signal" integer default 0 not null,
  "also_awaited_by" text,
  "forked_from" text,
  "trace_parent" text, constraint "running_has_lease" check ((status = 'running') = (lease_until is not null)), constraint "ended_is_finished" check ((status in ('completed', 'failed', 'timed_out', 'cancelled')) = (finished_at is not null))) strict;

CREATE INDEX "durably_runs_assigned" on "durably_runs" ("assigned_worker_id") where status = 'assigned';

CREATE INDEX "durably_runs_claim" on "durably_runs" ("priority" desc,
  "available_at",
  "id") where status = 'pending';

CREATE INDEX "durably_runs_claim_by_key" on "durably_runs" ("tenant",
  "concurrency_key",
  "concurrency_limit",
  "priority" desc,
  "available_at",
  "id") where status = 'pending' and concurrency_key is not null;

CREATE INDEX "durably_runs_claim_keyless" on "durably_runs" ("priority" desc,
  "available_at",
  "id") where status = 'pending' and concurrency_key is null;

CREATE INDEX "durably_runs_created" on "durably_runs" ("created_at",
  "id");

CREATE INDEX "durably_runs_due" on "durably_runs" ("job_name",
  "available_at") where status = 'pending';

CREATE INDEX "durably_runs_error_code" on "durably_runs" (json_extract(error_detail, '$.code'), created_at, id) where error_detail is not null;

CREATE INDEX "durably_runs_finished" on "durably_runs" ("finished_at",
  "id") where "finished_at" is not null;

CREATE UNIQUE INDEX "durably_runs_idempotency" on "durably_runs" ("tenant",
  "job_name",
  "idempotency_key") where "idempotency_key" is not null;

CREATE INDEX "durably_runs_job_created" on "durably_runs" ("job_name",
  "created_at",
  "id");

CREATE INDEX "durably_runs_job_finished" on "durably_runs" ("job_name",
  "status",
  "finished_at",
  "id") where finished_at is not null;

CREATE INDEX "durably_runs_of_tenant" on "durably_runs" ("tenant",
  "created_at",
  "id") where tenant <> '';

CREATE INDEX "durably_runs_of_tenant_job" on "durably_runs" ("tenant",
  "job_name",
  "created_at",
  "id") where tenant <> '';

CREATE INDEX "durably_runs_of_tenant_status" on "durably_runs" ("tenant",
  "status",
  "created_at",
  "id") where tenant <> '';

CREATE INDEX "durably_runs_orphaned" on "durably_runs" ("priority" desc,
  "available_at",
  "id") where status = 'orphaned';

CREATE INDEX "durably_runs_parent" on "durably_runs" ("parent_run_id") where "parent_run_id" is not null;

CREATE INDEX "durably_runs_placing" on "durably_runs" ("job_name",
  "tenant",
  "priority" desc,
  "available_at",
  "id") where status = 'pending' and tenant <> '';

CREATE INDEX "durably_runs_running" on "durably_runs" ("owner_id") where status = 'running';

CREATE UNIQUE INDEX "durably_runs_schedule" on "durably_runs" ("schedule_id",
  "scheduled_for") where "schedule_id" is not null;

CREATE INDEX "durably_runs_schedule_open" on "durably_runs" ("schedule_id") where schedule_id is not null and finished_at is null;

CREATE UNIQUE INDEX "durably_runs_slot" on "durably_runs" ("tenant",
  "concurrency_key",
  "concurrency_slot") where "concurrency_slot" is not null;

CREATE INDEX "durably_runs_status_created" on "durably_runs" ("status",
  "created_at");

CREATE INDEX "durably_runs_status_key" on "durably_runs" ("status",
  "concurrency_key");

CREATE TABLE "durably_schedules" ("id" text not null primary key,
  "tenant" text not null,
  "name" text not null,
  "source" text,
  "job_name" text not null,
  "payload" text,
  "definition" text not null,
  "overlap" text not null,
  "version" integer default 1 not null,
  "paused_because" text,
  "fired_until" text not null,
  "next_at" text,
  "due_at" text,
  "fire_token" text,
  "fired" integer default 0 not null,
  "missed" integer default 0 not null,
  "created_at" text not null,
  "updated_at" text not null,
  "ended_at" text) strict, without rowid;

CREATE INDEX "durably_schedules_due" on "durably_schedules" ("due_at",
  "id") where due_at is not null;

CREATE UNIQUE INDEX "durably_schedules_name" on "durably_schedules" ("tenant",
  "name");

CREATE TABLE "durably_schema_versions" ("version" integer not null primary key,
  "applied_at" text not null,
  "min_reader" integer not null) strict;

CREATE TABLE "durably_settings" ("name" text not null primary key,
  "value" text not null,
  "updated_at" text not null) strict, without rowid;

CREATE TABLE "durably_signals" ("run_id" text not null,
  "position" integer not null,
  "name" text not null,
  "payload" text,
  "dedupe_key" text,
  "created_at" text not null,
  "consumed_at" text, constraint "durably_signals_key" primary key ("run_id",
  "position")) strict, without rowid;

CREATE UNIQUE INDEX "durably_signals_dedupe" on "durably_signals" ("run_id",
  "dedupe_key") where "dedupe_key" is not null;

CREATE TABLE "durably_statistics" ("tenant_scope" text not null,
  "job_scope" text not null,
  "hour" text not null,
  "started" integer not null,
  "completed" integer not null,
  "failed" integer not null,
  "timed_out" integer not null,
  "cancelled" integer not null,
  "durations" text not null,
  "waits" text not null, constraint "durably_statistics_key" primary key ("tenant_scope",
  "job_scope",
  "hour")) strict, without rowid;

CREATE TABLE "durably_statistics_place" ("id" integer not null primary key,
  "finished_at" text not null,
  "run_id" text not null,
  "token" text not null) strict, without rowid;

CREATE TABLE "durably_steps" ("id" text not null primary key,
  "run_id" text not null,
  "name" text not null,
  "index" integer not null,
  "kind" text not null,
  "status" text not null,
  "attempt" integer not null,
  "output" text,
  "error" text,
  "error_detail" text,
  "checkpoint" text,
  "wait_name" text,
  "due_at" text,
  "lease_epoch" integer not null,
  "claim_token" text not null,
  "started_at" text not null,
  "completed_at" text) strict;

CREATE INDEX "durably_steps_index" on "durably_steps" ("run_id",
  "index");

CREATE UNIQUE INDEX "durably_steps_live_name" on "durably_steps" ("run_id",
  "name") where status <> 'failed';

CREATE INDEX "durably_steps_waiting" on "durably_steps" ("kind",
  "run_id") where status = 'waiting';

CREATE TABLE "durably_subscriptions" ("job_name" text not null,
  "type" text not null,
  "definition" text not null, constraint "durably_subscriptions_key" primary key ("type",
  "job_name")) strict, without rowid;

CREATE TABLE "durably_workers" ("worker_id" text not null primary key,
  "presence" text not null,
  "capacity" integer not null,
  "placed_jobs" text not null,
  "labels" text not null,
  "code_version" text,
  "first_beat_at" text not null,
  "last_beat_at" text not null,
  "alive_until" text not null) strict, without rowid;
