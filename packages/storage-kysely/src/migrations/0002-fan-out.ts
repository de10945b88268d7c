import type { Migration } from './migration'

/** How a run that waits for many children rests, and who waits for a run beside its parent. */
export const fanOut: Migration = {
  version: 2,
  // Who does not know the columns wakes everybody at once, as before, and the parent only.
  minReader: 1,
  build({ schema, name, types }) {
    const runs = () => schema.alterTable(name('runs'))
    return [
      runs().addColumn('wakes_wanted', 'integer', (column) => column.notNull().defaultTo(0)),
      runs().addColumn('rest_until', types.instant),
      runs().addColumn('last_signal', 'integer', (column) => column.notNull().defaultTo(0)),
      runs().addColumn('also_awaited_by', types.json),
    ]
  },
}
