import { type Kysely, sql, type Transaction } from 'kysely'
import type { Tables } from './tables'

/** In this order, each once; what has been released is not edited. */
const MIGRATIONS: readonly string[] = [
  `
  create table users (
    user_id text primary key,
    name text not null,
    issuer text not null,
    subject text not null,
    created_at timestamptz not null default now(),
    unique (issuer, subject)
  );
  create table logins (
    token_hash text primary key,
    user_id text not null references users on delete cascade,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
  );
  create table sessions (
    session_id text primary key,
    user_id text not null references users on delete cascade,
    title text not null,
    last_run_id text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    unique (session_id, user_id)
  );
  create index sessions_by_user on sessions (user_id, updated_at desc, session_id desc);
  create index sessions_unused on sessions (updated_at);
  create table forgotten_runs (
    run_id text primary key,
    user_id text not null
  );
  create sequence message_places;
  create table messages (
    message_id text primary key,
    session_id text not null,
    user_id text not null,
    run_id text not null,
    place bigint not null default nextval('message_places'),
    position integer not null,
    content json not null,
    created_at timestamptz not null default now(),
    unique (run_id, position),
    foreign key (session_id, user_id) references sessions (session_id, user_id) on delete cascade
  );
  create index messages_by_session on messages (session_id, place, position);
  create table session_files (
    session_id text not null,
    user_id text not null,
    path text not null,
    content bytea not null,
    size integer generated always as (length(content)) stored,
    updated_at timestamptz not null default now(),
    primary key (session_id, path),
    foreign key (session_id, user_id) references sessions (session_id, user_id) on delete cascade
  );
  create table staged_files (
    call_key text not null,
    session_id text not null,
    user_id text not null,
    path text not null,
    content bytea,
    created_at timestamptz not null default now(),
    primary key (call_key, path),
    foreign key (session_id, user_id) references sessions (session_id, user_id) on delete cascade
  );
  create table settings (
    user_id text primary key references users on delete cascade,
    provider text not null,
    base_url text,
    model text not null,
    reasoning text not null,
    api_key text,
    updated_at timestamptz not null default now()
  );
  create table auth (
    user_id text not null references users on delete cascade,
    provider text not null,
    issuer text not null,
    tokens text not null,
    generation integer not null default 1,
    refreshing_until timestamptz,
    expires_at timestamptz,
    trouble text,
    created_at timestamptz not null default now(),
    primary key (user_id, provider)
  );
  create table oauth_state (
    state_hash text primary key,
    purpose text not null check (purpose in ('sign-in', 'connect')),
    issuer text not null,
    redirect_uri text not null,
    browser_hash text not null,
    user_id text references users on delete cascade,
    verifier text not null,
    nonce text not null,
    return_to text not null,
    expires_at timestamptz not null
  );
  create table tools (
    name text primary key,
    description text not null,
    input json not null,
    needs_approval boolean not null,
    side_effects boolean not null,
    seen_at timestamptz not null default now()
  );
  `,
  // As rate-limiter-flexible wants it, which would create it without a lock: of two that do so at once one fails. Older processes did.
  `
  create table if not exists rate_limits (
    key varchar(255) primary key,
    points integer not null default 0,
    expire bigint
  );
  `,
]

/** Of all processes that start at once one does it. */
const LOCK = 4_201_511

/** Creates or updates the tables of the application; those of durably are durably's own to migrate. */
export async function migrateTables(db: Kysely<Tables>): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(${LOCK})`.execute(trx)
    await sql`create table if not exists app_migrations (number integer primary key)`.execute(trx)
    const { rows } = await sql<{ number: number }>`select number from app_migrations`.execute(trx)
    const done = new Set(rows.map(({ number }) => number))
    for (const [index, statements] of MIGRATIONS.entries()) {
      if (!done.has(index + 1)) await apply(trx, index + 1, statements)
    }
  })
}

async function apply(trx: Transaction<Tables>, number: number, statements: string): Promise<void> {
  for (const statement of statements.split(';')) {
    if (statement.trim() !== '') await sql.raw(statement).execute(trx)
  }
  await sql`insert into app_migrations (number) values (${number})`.execute(trx)
}
