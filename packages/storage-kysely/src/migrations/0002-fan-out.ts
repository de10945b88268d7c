import { sql } from 'kysely'
import type { Migration, MigrationContext } from './migration'

/** How a run that waits for many children rests, and who waits for a run beside its parent. */
export const fanOut: Migration = {
  version: 2,
  // Who does not know the columns wakes the parent only when a child ends: who else waits for it would wait for ever.
  minReader: 2,
  build(context) {
    const { schema, name, types } = context
    const runs = () => schema.alterTable(name('runs'))
    return [
      runs().addColumn('wakes_wanted', 'integer', (column) => column.notNull().defaultTo(0)),
      runs().addColumn('rest_until', types.instant),
      runs().addColumn('last_signal', 'integer', (column) => column.notNull().defaultTo(0)),
      runs().addColumn('also_awaited_by', types.json),
      ...claimIndexes(context),
    ]
  },
}

/** For SQLite what Postgres has: the runs that a busy key holds back are in nobody's way. */
function claimIndexes({ schema, name, dialect }: MigrationContext) {
  if (dialect !== 'sqlite') return []
  const index = (suffix: string) => schema.createIndex(name(`runs_${suffix}`)).on(name('runs'))
  const order = ['priority desc', 'available_at', 'id']
  return [
    index('claim_keyless').columns(order).where(sql<boolean>`status = 'pending' and concurrency_key is null`),
    index('claim_by_key')
      .columns(['tenant', 'concurrency_key', 'concurrency_limit', ...order])
      .where(sql<boolean>`status = 'pending' and concurrency_key is not null`),
  ]
}
