const PRIME = 0x01000193
const BASIS = 0x811c9dc5

/** 64 bits of a text, FNV-1a from its start and from its end. Not against forgers: for texts of durably's own. */
export function hashOf(text: string): string {
  let [fromStart, fromEnd] = [BASIS, BASIS]
  for (let index = 0; index < text.length; index++) {
    fromStart = Math.imul(fromStart ^ text.charCodeAt(index), PRIME)
    fromEnd = Math.imul(fromEnd ^ text.charCodeAt(text.length - 1 - index), PRIME)
  }
  return [fromStart, fromEnd].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('')
}
