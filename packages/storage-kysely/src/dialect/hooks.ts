import type { StorageError, StorageErrorCode } from '@coji/durably-core/storage'
import type { CompiledQuery, Dialect } from 'kysely'

/** `safe` survives a power cut with every acknowledged commit, `fast` may lose the newest ones. Both survive crashes. */
export type Durability = 'safe' | 'fast'

/** The rows of one statement. */
export type Rows = readonly Readonly<Record<string, unknown>>[]

/**
 * Who sends: an `owner` keeps runs going and waits for nobody for long, a `caller` may wait for what others hold, try after
 * try, a `remover` is a caller that makes room, and a `reader` may wait for a long answer.
 */
export type Sender = 'owner' | 'caller' | 'remover' | 'reader'

/** How long one try of a caller waits for a lock. */
export const CALLERS_LOCK_MS = 100

/** What a bare Kysely dialect hides and durably can use. Every hook is optional. */
export interface DialectHooks {
  /** The file or URL, for error messages. */
  readonly location: string | null
  /** Tells the database from all others that this origin of a browser can reach. */
  readonly database?: string
  /** The schema of durably's tables; without one, where the database puts them. */
  readonly schema?: string | null
  /** A process has one instance on it: a second one is the same code loaded anew. */
  readonly hasSoleInstance?: boolean
  /** Called before the first connection. */
  configure?(settings: { readonly durability: Durability }): void
  /**
   * Executes statements as one atomic write in one message to the database (a single one needs no transaction).
   * Waits for the connection for `waitMs` at most, then throws `CONNECTION_HELD`, having sent nothing; and for locks for
   * no longer than what is left of it. Where there are several connections, only owners get the last one.
   */
  batch?(queries: readonly CompiledQuery[], waitMs: number, sender: Sender): Promise<readonly Rows[]>
  /** As `batch`, within this very call. `null`: somebody has the connection, and nothing was sent. */
  batchNow?(queries: readonly CompiledQuery[]): readonly Rows[] | null
  /** `null` leaves the error to the general rules. */
  classifyError?(error: unknown): StorageErrorCode | null
  /** Whether an answer is lost for a reason that is over: what may be done twice is asked for again. */
  isOver?(error: unknown): boolean
  /** What is wrong with the connection when it was waited for in vain; `null` when somebody simply has it. */
  whyHeld?(): StorageError | null
  /** Called after SQLITE_BUSY, before anything else is sent. Waits for the connection for `waitMs` at most. */
  reset?(waitMs: number): Promise<void>
  /** Gives up a connection of its own, so that the next call opens a new one. */
  reopen?(waitMs: number): Promise<void>
  /** Carries hints between processes. Without it, polling finds what a hint would have told. */
  readonly notifications?: Notifications
  close?(): Promise<void>
}

/** Short messages between the processes on one database. They may be lost. */
export interface Notifications {
  send(channel: string, payload: string): Promise<void>
  /** Returns how to stop. */
  listen(channel: string, listener: NotificationListener): () => Promise<void>
}

/** Hears of notifications. */
export interface NotificationListener {
  onNotification(payload: string): void
  /** The connection was gone for a while: something may have been missed. */
  onDoubt(): void
}

/** A Kysely dialect that durably knows more about. */
export interface DurablyDialect extends Dialect {
  readonly durablyHooks: DialectHooks
}

export function hooksOf(dialect: Dialect): DialectHooks | null {
  return 'durablyHooks' in dialect ? (dialect as DurablyDialect).durablyHooks : null
}
