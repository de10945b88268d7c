import type { Rows } from '../dialect'

/** Connections of an application may hand integers out as BigInt. None of durably's is that large. */
export function plainIntegers(rows: Rows): Rows {
  return rows.some(hasBigInt) ? rows.map(toPlain) : rows
}

function hasBigInt(row: Rows[number]): boolean {
  for (const column in row) if (typeof row[column] === 'bigint') return true
  return false
}

function toPlain(row: Rows[number]): Rows[number] {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [column, typeof value === 'bigint' ? Number(value) : value]),
  )
}
