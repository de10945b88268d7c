import type { DurablyDialect } from '@coji/durably'
import type { Driver } from 'kysely'

type Hooks = DurablyDialect['durablyHooks']
type Statements = Parameters<NonNullable<Hooks['batch']>>[0]

/** The settings of the file stay as the application has made them. */
export function asItIs(dialect: DurablyDialect): DurablyDialect {
  const { configure: _, ...hooks } = dialect.durablyHooks
  return { ...dialect, durablyHooks: hooks }
}

/** Nothing but reads gets to the database, whatever is asked of the instance. */
export function readOnly(dialect: DurablyDialect): DurablyDialect {
  const { batch, batchNow: _, notifications, ...hooks } = asItIs(dialect).durablyHooks
  const durablyHooks: Hooks = {
    ...hooks,
    batch: async (statements, ...rest) => {
      refuseWrites(statements)
      return (await batch?.(statements, ...rest)) ?? []
    },
    ...(notifications !== undefined && {
      notifications: { send: async () => {}, listen: (channel, listener) => notifications.listen(channel, listener) },
    }),
  }
  return { ...dialect, durablyHooks, createDriver: () => withoutConnections(dialect.createDriver()) }
}

/** What is not a single read would go over one of them. */
function withoutConnections(driver: Driver): Driver {
  const refuse = async (): Promise<never> => {
    throw new Error(REFUSED)
  }
  return {
    init: () => driver.init(),
    acquireConnection: refuse,
    releaseConnection: refuse,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    destroy: () => driver.destroy(),
  }
}

const REFUSED = 'This database was opened for reading.'

/** A list of several is a transaction, which begins as a writing one. */
function refuseWrites(statements: Statements): void {
  const [first] = statements
  const isRead = first !== undefined && /^\s*(select|with)\b/i.test(first.sql) && !WRITING.test(first.sql)
  if (statements.length > 1 || !isRead) throw new Error(REFUSED)
}

const WRITING =
  /\b(insert\s+into|update\s+\S+\s+set|delete\s+from|for\s+(no\s+key\s+)?update|pg_(advisory|notify)\w*)\b/i
