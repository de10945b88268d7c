import { LogArchiveError, type LogArchive } from '@coji/durably-core'
import { broken, missing, refuseBadName, toLines, toPages } from './log-lines'

/** Something that keeps bytes under names, such as a bucket of S3. */
export interface BlobStore {
  /** Resolves when the bytes are there to stay. */
  put(key: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>
  /** `null` when there is nothing of that name. */
  get(key: string): Promise<Uint8Array<ArrayBuffer> | null>
  /** Also what is not there. */
  delete(key: string): Promise<void>
}

/** Keeps logs in a store of bytes: for each run one blob of JSON lines, compressed by gzip, in the form of `fileArchive`. */
export function blobArchive(store: BlobStore): LogArchive {
  const keyOf = (name: string) => {
    refuseBadName(name)
    return `${name}.jsonl.gz`
  }
  return {
    async write(name, pages) {
      const key = keyOf(name)
      const texts: string[] = []
      for await (const lines of toLines(pages)) texts.push(lines)
      await store.put(key, await compressed(new Blob(texts)))
    },
    async *read(name) {
      const bytes = await store.get(keyOf(name))
      if (bytes === null) throw missing(name)
      try {
        yield* toPages(decompressed(bytes), name)
      } catch (error) {
        throw error instanceof LogArchiveError ? error : broken(name, error)
      }
    },
    remove: (name) => store.delete(keyOf(name)),
  }
}

async function compressed(blob: Blob): Promise<Uint8Array<ArrayBuffer>> {
  const stream = blob.stream().pipeThrough(new CompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

async function* decompressed(bytes: Uint8Array<ArrayBuffer>): AsyncIterable<string> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  } finally {
    await reader.cancel().catch(() => {})
  }
}
