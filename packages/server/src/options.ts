import { InvalidOptionError, type Run } from '@coji/durably-core'
import { refuseUnknownOptions, requireInteger, type OptionNames } from '@coji/durably-core/extend'
import type { ServedInbox } from './messages'
import type { ServedSchedules } from './schedules'
import { requireSecret } from './signed'
import type { Action } from './wire'
import type { ServedCluster } from './workers'

/** What is asked of the application before anything is done. */
export interface Asked {
  readonly request: Request
  readonly action: Action
  /** The run it is about; `null` at the first question, and for what is not about one run. */
  readonly run: Run | null
}

/** Who asks, and what they may do. */
export interface Granted {
  /** Who it is, for `/me`, bulk actions, and the audit of what they do. */
  readonly actor?: string | undefined
  /** Whose runs they see; runs of others are as if they were not there. `null`: everybody's. */
  readonly tenant: string | null
  /** `'read'` changes nothing. */
  readonly allow: 'all' | 'read' | readonly Action[]
}

/** Which value of a run is about to leave the server. */
export interface RedactedField {
  readonly run: Pick<Run, 'id' | 'jobName' | 'tenant'>
  readonly field:
    | 'payload'
    | 'output'
    | 'error'
    | 'errorDetail'
    | 'checkpoint'
    | 'progress'
    | 'chunk'
    | 'message'
    | 'data'
    | 'explanation'
}

/** How runs are served. */
export interface HandlerOptions {
  /**
   * Says who asks and what they may do; `null` for nobody it knows. For what is about one run it is asked twice: first
   * whose runs they may see, then about that run.
   */
  readonly authorize?: ((asked: Asked) => Granted | null | Promise<Granted | null>) | undefined
  /** Everybody may do everything with everybody's runs. Instead of `authorize`. */
  readonly allowAnonymous?: true | undefined
  /** Where the handler is mounted, unless what it is mounted in takes that off: `/api/durably`. */
  readonly basePath?: string | undefined
  /** Changes or removes values of jobs before they leave the server: called for each of them, and answers at once. */
  readonly redact?: ((value: unknown, field: RedactedField) => unknown) | undefined
  /** Origins of other sites whose pages may write, such as `https://app.example.com`. Its own origin may. */
  readonly origins?: readonly string[] | undefined
  /** Signs the links of `signLink()`; without it there are none. 32 characters or more, the same on all instances. */
  readonly linkSecret?: string | undefined
  /** What `createScheduler()` made: served are its schedules. */
  readonly schedules?: ServedSchedules | undefined
  /** What `createInbox()` made: served are its messages. */
  readonly inbox?: ServedInbox | undefined
  /** What `createCluster()` made: served are its workers and who leads, to those who see the runs of all tenants. */
  readonly cluster?: ServedCluster | undefined
  /**
   * Whether runs can be changed by filter. Default `true`. Such a change asks `authorize` nothing about single runs: `false` where
   * it allows less for some of the runs of a tenant.
   */
  readonly bulk?: boolean | undefined
  /** Bytes of a body. Default 2 MiB. */
  readonly maxBodyBytes?: number | undefined
  /** So many runs, events or log lines in one answer. Default 200. */
  readonly maxPageSize?: number | undefined
  /** Milliseconds between signs of life on a stream. Default 15,000. Who has not read for four of them is let go. */
  readonly keepAliveInterval?: number | undefined
  /** Milliseconds after which `authorize` is asked again about a stream. Default 60,000. */
  readonly recheckInterval?: number | undefined
}

const OPTIONS: OptionNames<HandlerOptions> = {
  authorize: true,
  allowAnonymous: true,
  basePath: true,
  redact: true,
  origins: true,
  linkSecret: true,
  schedules: true,
  inbox: true,
  cluster: true,
  bulk: true,
  maxBodyBytes: true,
  maxPageSize: true,
  keepAliveInterval: true,
  recheckInterval: true,
}

/** The options with their defaults. */
export interface Settings {
  readonly authorize: (asked: Asked) => Granted | null | Promise<Granted | null>
  readonly basePath: string
  readonly redact: ((value: unknown, field: RedactedField) => unknown) | null
  readonly origins: readonly string[]
  readonly linkSecret: string | null
  readonly schedules: ServedSchedules | null
  readonly inbox: ServedInbox | null
  readonly cluster: ServedCluster | null
  readonly bulk: boolean
  readonly maxBodyBytes: number
  readonly maxPageSize: number
  readonly keepAliveMs: number
  readonly recheckMs: number
}

const EVERYBODY: Granted = { tenant: null, allow: 'all' }

export function toSettings(options: HandlerOptions): Settings {
  refuseUnknownOptions('createDurablyHandler()', options, OPTIONS)
  const { basePath = '', redact = null, origins = [], linkSecret = null } = options
  if (linkSecret !== null) requireSecret(linkSecret)
  const { bulk = true } = options
  if (typeof bulk !== 'boolean') throw new InvalidOptionError(`bulk must be true or false, not ${String(bulk)}.`)
  if (basePath !== '' && !/^\/.*[^/]$/.test(basePath)) {
    throw new InvalidOptionError(`basePath begins with a slash and ends without one, unlike "${basePath}".`)
  }
  return {
    authorize: authorizeIn(options),
    basePath,
    redact,
    origins: origins.map(originOf),
    linkSecret,
    schedules: options.schedules ?? null,
    inbox: options.inbox ?? null,
    cluster: options.cluster ?? null,
    bulk,
    maxBodyBytes: positive('maxBodyBytes', options.maxBodyBytes, 2 * 1024 * 1024),
    maxPageSize: positive('maxPageSize', options.maxPageSize, 200),
    keepAliveMs: positive('keepAliveInterval', options.keepAliveInterval, 15_000),
    recheckMs: positive('recheckInterval', options.recheckInterval, 60_000),
  }
}

/** Nobody gets an open door by leaving something out. */
function authorizeIn({ authorize, allowAnonymous }: HandlerOptions): Settings['authorize'] {
  if (authorize !== undefined && allowAnonymous !== undefined) {
    throw new InvalidOptionError('createDurablyHandler() takes either authorize or allowAnonymous, not both.')
  }
  if (typeof authorize === 'function') return authorize
  if (authorize === undefined && allowAnonymous === true) return () => EVERYBODY
  throw new InvalidOptionError(
    'createDurablyHandler() needs authorize, which says who may do what, or allowAnonymous: true for an open door.',
  )
}

function originOf(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : null
  if (url !== null && url.origin === address) return address
  throw new InvalidOptionError(`origins are such as "https://app.example.com", unlike "${String(address)}".`)
}

function positive(name: keyof HandlerOptions, given: number | undefined, preset: number): number {
  const chosen = given ?? preset
  requireInteger(name, chosen, { from: 1 })
  return chosen
}
