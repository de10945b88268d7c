import type { MessageWish } from '@coji/durably-core'

/** Whether a payload has the values that are wished for. */
export function isWanted(payload: unknown, where: MessageWish['where']): boolean {
  return Object.entries(where ?? {}).every(([place, value]) => valueAt(payload, place) === value)
}

/** What is at a place such as `user.id`. */
export function valueAt(payload: unknown, place: string): unknown {
  return place.split('.').reduce<unknown>((value, key) => {
    return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
      ? (value as Readonly<Record<string, unknown>>)[key]
      : undefined
  }, payload)
}
