import type { CompiledQuery } from 'kysely'

const varying = new WeakSet<CompiledQuery>()

/** Of which the best plan depends on what is asked: none that was made for one tenant is to be kept for another. */
export function asVarying(query: CompiledQuery): CompiledQuery {
  varying.add(query)
  return query
}

export function isVarying(query: CompiledQuery): boolean {
  return varying.has(query)
}
