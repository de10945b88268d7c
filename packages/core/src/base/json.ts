/** Whether two texts are one value: the order of an object's keys is none of it. */
export function isSameJson(one: Json | null, other: Json | null): boolean {
  if (one === other) return true
  return one !== null && other !== null && isSameValue(JSON.parse(one), JSON.parse(other))
}

function isSameValue(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length) return false
  const [a, b] = [one, other] as [Record<string, unknown>, Record<string, unknown>]
  return keys.every((key) => Object.hasOwn(b, key) && isSameValue(a[key], b[key]))
}

/** JSON text. */
export type Json = string
