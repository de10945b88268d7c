create table durably_archive_strays (
  name text collate "C" not null,
  announced_at timestamp(3) with time zone not null,
  is_given_up integer not null default 0
);
CREATE UNIQUE INDEX durably_archive_strays_pkey ON durably_archive_strays USING btree (name);

create table durably_audit (
  id text collate "C" not null,
  at timestamp(3) with time zone not null,
  tenant text collate "C" not null,
  actor text collate "C" not null,
  action text collate "C" not null,
  target_kind text collate "C" not null,
  target text collate "C" not null,
  before json,
  after json
);
CREATE INDEX durably_audit_at ON durably_audit USING btree (at, id);
CREATE UNIQUE INDEX durably_audit_pkey ON durably_audit USING btree (id);
CREATE INDEX durably_audit_target ON durably_audit USING btree (target, at, id);

create table durably_debounced_runs (
  tenant text collate "C" not null,
  job_name text collate "C" not null,
  key text collate "C" not null,
  run_id text collate "C" not null
);
CREATE UNIQUE INDEX durably_debounced_runs_key ON durably_debounced_runs USING btree (tenant, job_name, key);
CREATE INDEX durably_debounced_runs_run ON durably_debounced_runs USING btree (run_id);

create table durably_gathered (
  id text collate "C" not null,
  job_name text collate "C" not null,
  tenant text collate "C" not null,
  key text collate "C" not null,
  mode text collate "C" not null,
  max integer not null,
  payload json,
  due_at timestamp(3) with time zone not null,
  created_at timestamp(3) with time zone not null,
  place bigint not null,
  release_token text collate "C"
);
CREATE UNIQUE INDEX durably_gathered_pkey ON durably_gathered USING btree (id);

create table durably_inbox (
  id text collate "C" not null,
  tenant text collate "C" not null,
  type text collate "C" not null,
  payload json,
  dedupe_key text collate "C",
  available_at timestamp(3) with time zone not null,
  created_at timestamp(3) with time zone not null,
  processed_at timestamp(3) with time zone,
  wanted integer not null default 0,
  round integer not null default 0,
  deliver_token text collate "C"
);
CREATE INDEX durably_inbox_created ON durably_inbox USING btree (created_at, id);
CREATE UNIQUE INDEX durably_inbox_dedupe ON durably_inbox USING btree (tenant, dedupe_key) WHERE (dedupe_key IS NOT NULL);
CREATE UNIQUE INDEX durably_inbox_pkey ON durably_inbox USING btree (id);
CREATE INDEX durably_inbox_processed ON durably_inbox USING btree (processed_at, created_at);
CREATE INDEX durably_inbox_waiting ON durably_inbox USING btree (available_at, id) WHERE (processed_at IS NULL);

create table durably_job_starts (
  job_name text collate "C" not null,
  nth bigint not null,
  started_at timestamp(3) with time zone not null
);
CREATE UNIQUE INDEX durably_job_starts_key ON durably_job_starts USING btree (job_name, nth);

create table durably_jobs (
  name text collate "C" not null,
  version text collate "C" not null,
  code_version text collate "C" not null,
  options json not null,
  last_seen_at timestamp(3) with time zone not null
);
CREATE UNIQUE INDEX durably_jobs_key ON durably_jobs USING btree (name, version, code_version);

create table durably_leaders (
  name text collate "C" not null,
  worker_id text collate "C" not null,
  epoch bigint not null,
  lead_until timestamp(3) with time zone not null
);
CREATE UNIQUE INDEX durably_leaders_pkey ON durably_leaders USING btree (name);

create table durably_logs (
  id text collate "C" not null,
  run_id text collate "C" not null,
  step_name text collate "C",
  level text collate "C" not null,
  message text collate "C" not null,
  data json,
  timestamp timestamp(3) with time zone not null,
  write_order bigint not null generated always as identity
);
CREATE UNIQUE INDEX durably_logs_pkey ON durably_logs USING btree (id);
CREATE INDEX durably_logs_written ON durably_logs USING btree (run_id, write_order);

create table durably_paused_jobs (
  job_name text collate "C" not null,
  paused_at timestamp(3) with time zone not null
);
CREATE UNIQUE INDEX durably_paused_jobs_pkey ON durably_paused_jobs USING btree (job_name);

create table durably_run_events (
  run_id text collate "C" not null,
  seq integer not null,
  event_type text collate "C" not null,
  payload json not null,
  created_at timestamp(3) with time zone not null
);
CREATE UNIQUE INDEX durably_run_events_key ON durably_run_events USING btree (run_id, seq);

create table durably_run_labels (
  run_id text collate "C" not null,
  name text collate "C" not null,
  value text collate "C" not null,
  tenant text collate "C",
  created_at timestamp(3) with time zone
);
CREATE UNIQUE INDEX durably_run_labels_key ON durably_run_labels USING btree (run_id, name);
CREATE INDEX durably_run_labels_tenant_value ON durably_run_labels USING btree (tenant, name, value, created_at, run_id);
CREATE INDEX durably_run_labels_value ON durably_run_labels USING btree (name, value, created_at, run_id);

create table durably_runs (
  id text collate "C" not null,
  tenant text collate "C" not null default ''::text,
  job_name text collate "C" not null,
  job_version text collate "C",
  payload json,
  status text collate "C" not null,
  idempotency_key text collate "C",
  concurrency_key text collate "C",
  concurrency_limit integer not null default 1,
  concurrency_slot integer,
  hold_key_while_waiting integer not null default 0,
  priority integer not null default 0,
  available_at timestamp(3) with time zone,
  waiting_for json,
  current_step_index integer not null default 0,
  progress json,
  output json,
  error text collate "C",
  error_detail json,
  version integer not null default 1,
  attempt integer not null default 1,
  attempt_base integer not null default 0,
  crash_count integer not null default 0,
  assignments integer not null default 0,
  owner_id text collate "C",
  claim_token text collate "C",
  lease_epoch integer not null default 0,
  lease_until timestamp(3) with time zone,
  leader_epoch integer,
  commit_no integer not null default 0,
  wakes integer not null default 0,
  last_event_sequence integer not null default 0,
  cancel_requested_at timestamp(3) with time zone,
  timeout_ms bigint,
  deadline_at timestamp(3) with time zone,
  parent_run_id text collate "C",
  schedule_id text collate "C",
  scheduled_for timestamp(3) with time zone,
  heartbeat_at timestamp(3) with time zone,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  started_at timestamp(3) with time zone,
  finished_at timestamp(3) with time zone,
  assigned_worker_id text collate "C",
  assigned_at timestamp(3) with time zone,
  log_ref text collate "C",
  wakes_wanted integer not null default 0,
  rest_until timestamp(3) with time zone,
  last_signal integer not null default 0,
  also_awaited_by json,
  forked_from text collate "C",
  trace_parent text collate "C",
  constraint ended_is_finished CHECK (((status = ANY (ARRAY['completed'::text, 'failed'::text, 'timed_out'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
  constraint running_has_lease CHECK (((status = 'running'::text) = (lease_until IS NOT NULL)))
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=2000, autovacuum_analyze_scale_factor=0.02, autovacuum_analyze_threshold=500);
CREATE INDEX durably_runs_assigned ON durably_runs USING btree (assigned_worker_id) WHERE ((status || ''::text) = 'assigned'::text);
CREATE INDEX durably_runs_claim ON durably_runs USING btree (priority DESC, available_at, id) WHERE (((status || ''::text) = 'pending'::text) AND (concurrency_key IS NULL));
CREATE INDEX durably_runs_claim_by_key ON durably_runs USING btree (tenant, concurrency_key, priority DESC, available_at, id) WHERE (((status || ''::text) = 'pending'::text) AND (concurrency_key IS NOT NULL));
CREATE INDEX durably_runs_claim_keyed ON durably_runs USING btree (priority DESC, available_at, id) WHERE (((status || ''::text) = 'pending'::text) AND (concurrency_key IS NOT NULL));
CREATE INDEX durably_runs_created ON durably_runs USING btree (created_at, id);
CREATE INDEX durably_runs_due ON durably_runs USING btree (job_name, available_at) WHERE ((status || ''::text) = 'pending'::text);
CREATE INDEX durably_runs_error_code ON durably_runs USING btree (((error_detail ->> 'code'::text)), created_at, id) WHERE (error_detail IS NOT NULL);
CREATE INDEX durably_runs_finished ON durably_runs USING btree (finished_at, id) WHERE (finished_at IS NOT NULL);
CREATE UNIQUE INDEX durably_runs_idempotency ON durably_runs USING btree (tenant, job_name, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX durably_runs_job_created ON durably_runs USING btree (job_name, created_at, id);
CREATE INDEX durably_runs_job_finished ON durably_runs USING btree (job_name, status, finished_at, id) WHERE (finished_at IS NOT NULL);
CREATE INDEX durably_runs_of_tenant ON durably_runs USING btree (tenant, created_at, id) WHERE (tenant <> ''::text);
CREATE INDEX durably_runs_of_tenant_job ON durably_runs USING btree (tenant, job_name, created_at, id) WHERE (tenant <> ''::text);
CREATE INDEX durably_runs_of_tenant_status ON durably_runs USING btree (tenant, status, created_at, id) WHERE (tenant <> ''::text);
CREATE INDEX durably_runs_orphaned ON durably_runs USING btree (priority DESC, available_at, id) WHERE (status = 'orphaned'::text);
CREATE INDEX durably_runs_parent ON durably_runs USING btree (parent_run_id) WHERE (parent_run_id IS NOT NULL);
CREATE UNIQUE INDEX durably_runs_pkey ON durably_runs USING btree (id);
CREATE INDEX durably_runs_placing ON durably_runs USING btree (job_name, tenant, priority DESC, available_at, id) WHERE (((status || ''::text) = 'pending'::text) AND (tenant <> ''::text));
CREATE INDEX durably_runs_running ON durably_runs USING btree (owner_id) WHERE (status = 'running'::text);
CREATE UNIQUE INDEX durably_runs_schedule ON durably_runs USING btree (schedule_id, scheduled_for) WHERE (schedule_id IS NOT NULL);
CREATE INDEX durably_runs_schedule_open ON durably_runs USING btree (schedule_id) WHERE ((schedule_id IS NOT NULL) AND (finished_at IS NULL));
CREATE UNIQUE INDEX durably_runs_slot ON durably_runs USING btree (tenant, concurrency_key, concurrency_slot) WHERE (concurrency_slot IS NOT NULL);
CREATE INDEX durably_runs_status_created ON durably_runs USING btree (status, created_at);
CREATE INDEX durably_runs_status_key ON durably_runs USING btree (status, concurrency_key);
CREATE INDEX durably_runs_waiting_kind ON durably_runs USING btree (((waiting_for ->> 'kind'::text)), tenant, created_at, id) WHERE ((status = 'pending'::text) AND ((waiting_for ->> 'kind'::text) = ANY (ARRAY['retry'::text, 'unpark'::text])));

create table durably_schedules (
  id text collate "C" not null,
  tenant text collate "C" not null,
  name text collate "C" not null,
  source text collate "C",
  job_name text collate "C" not null,
  payload json,
  definition json not null,
  overlap text collate "C" not null,
  version integer not null default 1,
  paused_because text collate "C",
  fired_until timestamp(3) with time zone not null,
  next_at timestamp(3) with time zone,
  due_at timestamp(3) with time zone,
  fire_token text collate "C",
  fired bigint not null default 0,
  missed bigint not null default 0,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  ended_at timestamp(3) with time zone
);
CREATE INDEX durably_schedules_due ON durably_schedules USING btree (due_at, id) WHERE (due_at IS NOT NULL);
CREATE UNIQUE INDEX durably_schedules_name ON durably_schedules USING btree (tenant, name);
CREATE UNIQUE INDEX durably_schedules_pkey ON durably_schedules USING btree (id);

create table durably_schema_versions (
  version integer not null,
  applied_at timestamp(3) with time zone not null,
  min_reader integer not null
);
CREATE UNIQUE INDEX durably_schema_versions_pkey ON durably_schema_versions USING btree (version);

create table durably_settings (
  name text collate "C" not null,
  value json not null,
  updated_at timestamp(3) with time zone not null
);
CREATE UNIQUE INDEX durably_settings_pkey ON durably_settings USING btree (name);

create table durably_signals (
  run_id text collate "C" not null,
  position integer not null,
  name text collate "C" not null,
  payload json,
  dedupe_key text collate "C",
  created_at timestamp(3) with time zone not null,
  consumed_at timestamp(3) with time zone
);
CREATE UNIQUE INDEX durably_signals_dedupe ON durably_signals USING btree (run_id, dedupe_key) WHERE (dedupe_key IS NOT NULL);
CREATE UNIQUE INDEX durably_signals_key ON durably_signals USING btree (run_id, "position");

create table durably_statistics (
  tenant_scope text collate "C" not null,
  job_scope text collate "C" not null,
  hour timestamp(3) with time zone not null,
  started bigint not null,
  completed bigint not null,
  failed bigint not null,
  timed_out bigint not null,
  cancelled bigint not null,
  durations json not null,
  waits json not null
);
CREATE UNIQUE INDEX durably_statistics_key ON durably_statistics USING btree (tenant_scope, job_scope, hour);

create table durably_statistics_place (
  id integer not null,
  finished_at timestamp(3) with time zone not null,
  run_id text collate "C" not null,
  token text collate "C" not null
);
CREATE UNIQUE INDEX durably_statistics_place_pkey ON durably_statistics_place USING btree (id);

create table durably_steps (
  id text collate "C" not null,
  run_id text collate "C" not null,
  name text collate "C" not null,
  index integer not null,
  kind text collate "C" not null,
  status text collate "C" not null,
  attempt integer not null,
  output json,
  error text collate "C",
  error_detail json,
  checkpoint json,
  wait_name text collate "C",
  due_at timestamp(3) with time zone,
  lease_epoch integer not null,
  claim_token text collate "C" not null,
  started_at timestamp(3) with time zone not null,
  completed_at timestamp(3) with time zone,
  write_order bigint not null generated always as identity
);
CREATE INDEX durably_steps_index ON durably_steps USING btree (run_id, index);
CREATE UNIQUE INDEX durably_steps_live_name ON durably_steps USING btree (run_id, name) WHERE (status <> 'failed'::text);
CREATE UNIQUE INDEX durably_steps_pkey ON durably_steps USING btree (id);
CREATE INDEX durably_steps_waiting ON durably_steps USING btree (kind, run_id) WHERE (status = 'waiting'::text);

create table durably_subscriptions (
  job_name text collate "C" not null,
  type text collate "C" not null,
  definition json not null
);
CREATE UNIQUE INDEX durably_subscriptions_key ON durably_subscriptions USING btree (type, job_name);

create table durably_workers (
  worker_id text collate "C" not null,
  presence text collate "C" not null,
  capacity integer not null,
  placed_jobs json not null,
  labels json not null,
  code_version text collate "C",
  first_beat_at timestamp(3) with time zone not null,
  last_beat_at timestamp(3) with time zone not null,
  alive_until timestamp(3) with time zone not null
);
CREATE UNIQUE INDEX durably_workers_pkey ON durably_workers USING btree (worker_id);
