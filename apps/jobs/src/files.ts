/**
 * Where a job finds its input. A payload carries a reference (a path, a key), the application says what it stands for:
 * a file on disk, an OPFS handle, an object in a bucket. Read in ranges, so that no input has to fit into memory.
 */
export interface FileSource {
  /** In bytes; rejects when there is nothing under the reference. */
  size(reference: string): Promise<number>
  /** The bytes from `start` up to, but not including, `end`. */
  read(reference: string, start: number, end: number): Promise<Uint8Array>
}

/** A source that also takes results. What was written is replaced as a whole, so a step may write it again. */
export interface FileStore extends FileSource {
  write(reference: string, bytes: Uint8Array): Promise<void>
}
