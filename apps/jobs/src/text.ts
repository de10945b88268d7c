const encoder = new TextEncoder()
// A byte order mark stays in the text, so that its bytes are counted like any others.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Text as UTF-8. */
export function toBytes(text: string): Uint8Array {
  return encoder.encode(text)
}

/** UTF-8 as text; throws a `TypeError` for bytes that are not UTF-8. */
export function toText(bytes: Uint8Array): string {
  return decoder.decode(bytes)
}

/** The bytes without a character that was cut off at their end. */
export function wholeCharacters(bytes: Uint8Array): Uint8Array {
  const length = bytes.length
  for (let back = 1; back <= Math.min(3, length); back++) {
    const byte = bytes[length - back] ?? 0
    if (byte < 0x80) return bytes
    if (byte >= 0xc0) return back < sequenceLength(byte) ? bytes.subarray(0, length - back) : bytes
  }
  return bytes
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf0) return 4
  return lead >= 0xe0 ? 3 : 2
}
