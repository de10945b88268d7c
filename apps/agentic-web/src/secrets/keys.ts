import { createHash } from 'node:crypto'

/** A key with the name under which values say that they need it. */
export interface SecretKey {
  readonly id: string
  readonly key: Buffer
}

const SHORTEST = 32

/** `2026-11:text,2026-05:text`: the first encrypts, all decrypt. A text of 32 characters or more becomes a key of 256 bits. */
export function readKeys(given: string): { readonly keys: readonly SecretKey[]; readonly trouble: string | null } {
  const keys: SecretKey[] = []
  for (const part of given.split(',')) {
    const [, id, text] = /^\s*([\w-]{1,40}):(\S+)\s*$/.exec(part) ?? []
    if (id === undefined || text === undefined) return { keys, trouble: 'must be a list of id:key' }
    if (text.length < SHORTEST) return { keys, trouble: `has a key "${id}" with less than ${SHORTEST} characters` }
    if (keys.some((key) => key.id === id)) return { keys, trouble: `has two keys "${id}"` }
    keys.push({ id, key: createHash('sha256').update(text).digest() })
  }
  return { keys, trouble: null }
}
