import { mkdir, open, rename, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { FileStore } from '@coji/durably-jobs'

/** The files of the jobs in a folder. A write makes a new file that takes the place of the old one: all or nothing. */
export function createDiskFiles(folder: string): FileStore {
  return {
    size: async (reference) => (await stat(join(folder, reference))).size,
    read: (reference, start, end) => readRange(join(folder, reference), start, end),
    write: async (reference, bytes) => {
      const path = join(folder, reference)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(`${path}.${process.pid}`, bytes)
      await rename(`${path}.${process.pid}`, path)
    },
  }
}

async function readRange(path: string, start: number, end: number): Promise<Uint8Array> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}
