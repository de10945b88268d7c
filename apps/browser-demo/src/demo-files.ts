import type { FileStore } from '@coji/durably-jobs'

/** Text or bytes, a piece at a time. */
export type Chunks = AsyncIterable<string | Uint8Array>

/** Where the jobs of the page read and write, with what the page needs beside: long writes, and removal. */
export interface DemoFiles extends FileStore {
  /** Writes a file of any size without having it in memory. It is there as a whole or not at all. */
  writeChunks(reference: string, chunks: Chunks): Promise<void>
  /** Removes everything below a folder; nothing there is fine. */
  removeFolder(folder: string): Promise<void>
  folders(): Promise<string[]>
}
