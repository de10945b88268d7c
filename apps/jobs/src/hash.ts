/** FNV-1a over UTF-16 units with a finishing mix, so that all 32 bits are usable. Not for secrets. */
export function hash32(text: string, seed = 0): number {
  let hash = 0x811c9dc5 ^ seed
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return mix(hash)
}

/** 16 hexadecimal digits that tell whether a file is still the one that a step wrote. */
export function digestOf(bytes: Uint8Array): string {
  let first = 0x811c9dc5
  let second = 0x9e3779b9
  for (const byte of bytes) {
    first = Math.imul(first ^ byte, 0x01000193)
    second = Math.imul(second ^ byte, 0x85ebca6b)
  }
  return hex(mix(first)) + hex(mix(second ^ bytes.length))
}

function mix(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

function hex(value: number): string {
  return value.toString(16).padStart(8, '0')
}
