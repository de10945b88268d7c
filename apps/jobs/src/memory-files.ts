import type { FileStore } from './files'

/** Files in memory, for tests and for pages without OPFS. */
export function createMemoryFiles(): FileStore {
  const contents = new Map<string, Uint8Array>()
  const find = (reference: string): Uint8Array => {
    const bytes = contents.get(reference)
    if (bytes === undefined) throw new Error(`There is no file "${reference}".`)
    return bytes
  }
  return {
    size: async (reference) => find(reference).byteLength,
    read: async (reference, start, end) => find(reference).slice(start, end),
    write: async (reference, bytes) => {
      contents.set(reference, bytes.slice())
    },
  }
}
