import type { DemoFiles } from './demo-files'

/** Apart from the database, which lies in the root. */
const FOLDER = 'durably-demo-files'

/** Files of this origin that only its pages see: they survive a reload, a crash and a restart of the browser. */
export function createOpfsFiles(): DemoFiles {
  const root = async () => (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true })
  const open = async (reference: string, create: boolean) => {
    const { folders, name } = parse(reference)
    let folder = await root()
    for (const each of folders) folder = await folder.getDirectoryHandle(each, { create })
    return folder.getFileHandle(name, { create })
  }
  const find = async (reference: string): Promise<File> => {
    try {
      return await (await open(reference, false)).getFile()
    } catch (cause) {
      throw isMissing(cause) ? new Error(`There is no file "${reference}".`, { cause }) : cause
    }
  }
  return {
    size: async (reference) => (await find(reference)).size,
    read: async (reference, start, end) =>
      new Uint8Array(await (await find(reference)).slice(start, end).arrayBuffer()),
    write: (reference, bytes) => writeAll(open(reference, true), [bytes]),
    writeChunks: (reference, chunks) => writeAll(open(reference, true), chunks),
    async removeFolder(folder) {
      try {
        await (await root()).removeEntry(folder, { recursive: true })
      } catch (error) {
        if (!isMissing(error)) throw error
      }
    },
    async folders() {
      const names: string[] = []
      for await (const name of (await root()).keys()) names.push(name)
      return names
    },
  }
}

/** What is written becomes the file when it is closed, not before. */
async function writeAll(
  opening: Promise<FileSystemFileHandle>,
  chunks: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
): Promise<void> {
  const writable = await (await opening).createWritable()
  try {
    for await (const chunk of chunks) {
      await writable.write(typeof chunk === 'string' ? chunk : new Uint8Array(chunk))
    }
    await writable.close()
  } catch (error) {
    await writable.abort().catch(() => undefined)
    throw error
  }
}

function parse(reference: string): { readonly folders: readonly string[]; readonly name: string } {
  const folders = reference.split('/')
  return { name: folders.pop() ?? '', folders }
}

function isMissing(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'NotFoundError'
}
