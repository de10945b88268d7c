import type { DurablyDatabase } from '@coji/durably'
import type { ColumnType, Generated, JSONColumnType } from 'kysely'
import type { MessageContent } from '../contract'

type Instant = ColumnType<Date, Date | undefined, Date>

/** Who may come in: a demo user, or one whom the identity provider knows as `subject`. */
interface Users {
  user_id: string
  name: string
  issuer: string
  subject: string
  created_at: Instant
}

/** A browser that is signed in. Its cookie is not kept, only the hash of it. */
interface Logins {
  token_hash: string
  user_id: string
  created_at: Instant
  expires_at: Date
}

interface Sessions {
  session_id: string
  user_id: string
  title: string
  last_run_id: string | null
  created_at: Instant
  updated_at: Instant
}

/** Runs of sessions that are gone, which go when they have ended. */
interface ForgottenRuns {
  run_id: string
  user_id: string
}

/** `place` orders the runs of a session, `position` what was said in one. */
interface Messages {
  message_id: string
  session_id: string
  user_id: string
  run_id: string
  place: Generated<string>
  position: number
  content: JSONColumnType<MessageContent>
  created_at: Instant
}

interface SessionFiles {
  session_id: string
  user_id: string
  path: string
  content: Buffer
  size: Generated<number>
  updated_at: Instant
}

/** What a call has written, until its result is kept. `content` is null for a file that it removed. */
interface StagedFiles {
  call_key: string
  session_id: string
  user_id: string
  path: string
  content: Buffer | null
  created_at: Instant
}

interface Settings {
  user_id: string
  provider: string
  base_url: string | null
  model: string
  reasoning: string
  api_key: string | null
  updated_at: Instant
}

/** The account of a user at a model provider. `tokens` is sealed. */
interface Auth {
  user_id: string
  provider: string
  issuer: string
  tokens: string
  generation: number
  refreshing_until: Date | null
  expires_at: Date | null
  trouble: string | null
  created_at: Instant
}

/** A visit to a provider that has begun. `state_hash` is all that is kept of the state, `verifier` is sealed. */
interface OauthState {
  state_hash: string
  purpose: string
  issuer: string
  redirect_uri: string
  browser_hash: string
  user_id: string | null
  verifier: string
  nonce: string
  return_to: string
  expires_at: Date
}

/** What workers can call, as they said last. */
interface Tools {
  name: string
  description: string
  input: JSONColumnType<Record<string, unknown>>
  needs_approval: boolean
  side_effects: boolean
  seen_at: Instant
}

export interface Tables extends DurablyDatabase {
  users: Users
  logins: Logins
  sessions: Sessions
  forgotten_runs: ForgottenRuns
  messages: Messages
  session_files: SessionFiles
  staged_files: StagedFiles
  settings: Settings
  auth: Auth
  oauth_state: OauthState
  tools: Tools
}
