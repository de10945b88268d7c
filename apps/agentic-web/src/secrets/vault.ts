import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { SecretKey } from './keys'

const ALGORITHM = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

/** Where a value is kept: in another row or column it cannot be opened. */
export interface Place {
  readonly table: string
  readonly column: string
  readonly row: string
}

/** Encrypts what is kept in the database. */
export interface Vault {
  seal(text: string, place: Place): string
  /** Throws for what was not sealed here, for this place, or with a key that is not there. */
  open(sealed: string, place: Place): string
  /** Whether it was sealed with an older key. */
  isOld(sealed: string): boolean
}

export function createVault(keys: readonly SecretKey[]): Vault {
  const [current] = keys
  if (current === undefined) throw new TypeError('A vault needs a key.')
  return {
    seal(text, place) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv(ALGORITHM, current.key, iv, { authTagLength: TAG_BYTES })
      cipher.setAAD(aadOf(current.id, place))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return `${current.id}.${Buffer.concat([iv, body, cipher.getAuthTag()]).toString('base64url')}`
    },
    open(sealed, place) {
      const [id = '', text = ''] = sealed.split('.')
      const key = keys.find((each) => each.id === id)
      if (key === undefined) throw new Error(`The key "${id}" is not in SECRET_KEYS, and a value needs it.`)
      const bytes = Buffer.from(text, 'base64url')
      if (bytes.length < IV_BYTES + TAG_BYTES) throw new Error('A sealed value was cut off.')
      // Without the length Node takes four bytes of a tag for a whole one.
      const decipher = createDecipheriv(ALGORITHM, key.key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
      decipher.setAAD(aadOf(id, place))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      const body = bytes.subarray(IV_BYTES, -TAG_BYTES)
      return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8')
    },
    isOld: (sealed) => !sealed.startsWith(`${current.id}.`),
  }
}

function aadOf(keyId: string, { table, column, row }: Place): Buffer {
  return Buffer.from(JSON.stringify([keyId, table, column, row]))
}
