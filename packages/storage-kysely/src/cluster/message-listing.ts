import type { MessageQuery } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { SqlType } from '../dialect'
import type { Listing } from '../read'
import type { Sql, SqlContext } from '../statement'

/** By when they were published. There is no index for what else is asked: each message more would pay for it. */
export function listingOf(context: SqlContext, { from, before, ...query }: MessageQuery): Listing {
  return {
    ...{ table: 'inbox', index: 'inbox_created' },
    place: [
      { name: 'created_at', type: 'instant' },
      { name: 'id', type: 'text' },
    ],
    within: timesOf(context, { ...(from !== undefined && { from }), ...(before !== undefined && { before }) }),
    conditions: conditionsOf(context, query),
  }
}

export function valueIn({ dialect }: SqlContext) {
  return (given: string | number, type: SqlType = 'text') => dialect.parameter(sql`${given}`, type)
}

export const IS_UNWANTED = sql`(processed_at is not null and wanted = 0)`

function conditionsOf(context: SqlContext, query: Omit<MessageQuery, 'from' | 'before'>): readonly Sql[] {
  const value = valueIn(context)
  const { tenant, types, isProcessed, isUnwanted } = query
  return [
    ...(tenant === undefined ? [] : [sql`tenant = ${value(tenant)}`]),
    ...(types === undefined ? [] : [context.dialect.isOneOf(sql`type`, value(JSON.stringify(types)))]),
    ...(isProcessed === undefined ? [] : [isProcessed ? sql`processed_at is not null` : sql`processed_at is null`]),
    ...(isUnwanted === undefined ? [] : [isUnwanted ? IS_UNWANTED : sql`not ${IS_UNWANTED}`]),
  ]
}

function timesOf(context: SqlContext, { from, before }: Pick<MessageQuery, 'from' | 'before'>): readonly Sql[] {
  const value = valueIn(context)
  return [
    ...(from === undefined ? [] : [sql`created_at >= ${value(from, 'instant')}`]),
    ...(before === undefined ? [] : [sql`created_at < ${value(before, 'instant')}`]),
  ]
}
