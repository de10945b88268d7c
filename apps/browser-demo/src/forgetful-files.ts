import { createMemoryFiles } from '@coji/durably-jobs'
import type { DemoFiles } from './demo-files'

/** Files for a page that may not store any: gone with the page. */
export function createForgetfulFiles(): DemoFiles {
  const files = createMemoryFiles()
  return {
    ...files,
    async writeChunks(reference, chunks) {
      const parts: BlobPart[] = []
      for await (const chunk of chunks) {
        parts.push(typeof chunk === 'string' ? chunk : new Uint8Array(chunk))
        await turn()
      }
      await files.write(reference, new Uint8Array(await new Blob(parts).arrayBuffer()))
    },
    removeFolder: async () => undefined,
    folders: async () => [],
  }
}

/** Lets the page answer to its user. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve))
}
