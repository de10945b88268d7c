import { describe, expect, it } from 'vitest'
import { readKeys } from './keys'
import { createVault } from './vault'

const [OLD, NEW] = [`old:${'o'.repeat(32)}`, `new:${'n'.repeat(32)}`]
const vaultWith = (...keys: string[]) => createVault(readKeys(keys.join(',')).keys)

const PLACE = { table: 'settings', column: 'api_key', row: 'ada' }
const SECRET = 'sk-of-ada'
const vault = vaultWith(OLD)
const sealed = vault.seal(SECRET, PLACE)
const bytes = Buffer.from(sealed.slice('old.'.length), 'base64url')
const sealedAs = (changed: Uint8Array) => `old.${Buffer.from(changed).toString('base64url')}`

function flipped(bit: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7))
  return copy
}

function opens(text: string): boolean {
  try {
    vault.open(text, PLACE)
    return true
  } catch {
    return false
  }
}

describe('what is sealed', () => {
  it('is opened where it was sealed for, and is another text each time', () => {
    expect(vault.open(sealed, PLACE)).toBe(SECRET)
    expect(vault.seal(SECRET, PLACE)).not.toBe(sealed)
    expect(sealed).not.toContain(SECRET)
  })

  it('is not opened with any bit of it flipped', () => {
    const bits = Array.from({ length: bytes.length * 8 }, (_, bit) => bit)
    expect(bits.filter((bit) => opens(sealedAs(flipped(bit))))).toEqual([])
  })

  it('is not opened when anything of it is cut off, of its tag too', () => {
    const lengths = [...bytes.keys()]
    expect(lengths.filter((length) => opens(sealedAs(bytes.subarray(0, length))))).toEqual([])
  })

  it.each([{ table: 'auth' }, { column: 'tokens' }, { row: 'grace' }])(
    'is not opened at another place: %j',
    (other) => {
      expect(() => vault.open(sealed, { ...PLACE, ...other })).toThrow()
    },
  )

  it('is opened with the key that it names, which need not be the first, and with no other', () => {
    const both = vaultWith(NEW, OLD)
    expect(both.open(sealed, PLACE)).toBe(SECRET)
    expect(both.isOld(sealed)).toBe(true)
    expect(both.isOld(both.seal(SECRET, PLACE))).toBe(false)
    expect(() => vaultWith(NEW).open(sealed, PLACE)).toThrow('"old" is not in SECRET_KEYS')
    expect(() => both.open(sealed.replace('old.', 'new.'), PLACE)).toThrow()
  })
})
