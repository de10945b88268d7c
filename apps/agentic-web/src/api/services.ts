import type { JobHandle } from '@coji/durably'
import type { DurablyHandler } from '@coji/durably-server'
import type { Context } from 'hono'
import type { AGENT_JOB, agentDeclaration } from '../agent/declaration'
import type { ApiConfig } from '../config'
import type { User } from '../contract'
import type { Database } from '../database/open'
import type { Log } from '../log'
import type { Provider, Purpose } from '../oauth/provider'
import type { Cookies, Identity } from './identity'
import type { Limits } from './limits'

type TypesOf = NonNullable<(typeof agentDeclaration)['types']>

/** What the routes of one instance share. Nothing of it is state: any instance answers any request. */
export interface Services extends Database {
  readonly config: ApiConfig
  readonly agent: JobHandle<typeof AGENT_JOB, TypesOf['input'], TypesOf['output']>
  /** Serves runs and their events. */
  readonly runs: DurablyHandler
  readonly identity: Identity
  readonly cookies: Cookies
  readonly limits: Limits
  readonly providers: Readonly<Record<Purpose, Provider | null>>
  readonly log: Log
}

export interface AppEnv {
  Variables: { user: User }
}

export type AppContext = Context<AppEnv>
