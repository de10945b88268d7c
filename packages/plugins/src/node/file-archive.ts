import { createReadStream } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { LogArchiveError, type LogArchive } from '@coji/durably-core'
import { broken, missing, refuseBadName, toLines, toPages } from '../log-lines'

/**
 * Keeps logs in a folder: for each run a file of JSON lines, compressed by gzip, in a subfolder of some days. A file is whole
 * and on the disk when it gets its name. All processes that archive logs, or read them, need the same folder.
 */
export function fileArchive(folder: string): LogArchive {
  const root = resolve(folder)
  const pathOf = (name: string) => {
    refuseBadName(name)
    return join(root, name.slice(0, 4), `${name}.jsonl.gz`)
  }
  return {
    async write(name, pages) {
      const path = pathOf(name)
      await mkdir(dirname(path), { recursive: true })
      // One name, of which who gives it up can tell the other.
      const draft = draftOf(path)
      try {
        await writeWhole(draft, pages)
        await rename(draft, path)
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      }
      for (const parent of [dirname(path), root]) await syncFolder(parent)
    },
    read: (name) => toPages(textOf(pathOf(name), name), name),
    async remove(name) {
      const path = pathOf(name)
      for (const one of [path, draftOf(path)]) await rm(one, { force: true })
    },
  }
}

function draftOf(path: string): string {
  return `${path}.draft`
}

async function writeWhole(path: string, pages: Parameters<LogArchive['write']>[1]): Promise<void> {
  const file = await open(path, 'w')
  try {
    await pipeline(Readable.from(toLines(pages)), createGzip(), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) await file.appendFile(chunk)
    })
    await file.sync()
  } finally {
    await file.close()
  }
}

/** So that the name is there after a loss of power. Where folders cannot be opened, the system sees to it itself. */
async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, 'r')
    await folder.sync().finally(() => folder.close())
  } catch (error) {
    if (!['EPERM', 'EISDIR', 'EACCES', 'EINVAL'].includes(codeOf(error))) throw error
  }
}

async function* textOf(path: string, name: string): AsyncIterable<string> {
  const source = createReadStream(path)
  const text = createGunzip()
  source.on('error', (error) => text.destroy(error))
  try {
    yield* source.pipe(text).setEncoding('utf8') as AsyncIterable<string>
  } catch (error) {
    throw toArchiveError(error, name)
  } finally {
    source.destroy()
    text.destroy()
  }
}

function toArchiveError(error: unknown, name: string): unknown {
  const code = codeOf(error)
  if (code === 'ENOENT') return missing(name, error)
  if (code.startsWith('Z_')) return broken(name, error)
  return new LogArchiveError('unreachable', `The archive of logs cannot be read: ${code}.`, { cause: error })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
