import { createHash } from 'node:crypto'
import { closeSync, constants, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { StorageError, type StorageErrorCode } from '@coji/durably-core/storage'

const NEWLINE = 0x0a

/**
 * A file that only grows, one checked line per write: `<checksum> <json>`. A line is acknowledged once it is synced, so
 * a last line that is cut off or garbled was acknowledged to nobody, and is taken off when the file is opened. Anything
 * else that does not fit its checksum is damage, and nothing is built on it.
 */
export class LogFile {
  readonly #path: string
  #fd: number | null
  #size: number

  constructor(path: string, replay: (json: string) => void) {
    this.#path = path
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
    try {
      const content = readFileSync(fd)
      this.#size = replayLines(content, path, replay)
      if (this.#size < content.length) ftruncateSync(fd, this.#size)
      fsyncSync(fd)
      syncFolder(path)
    } catch (error) {
      closeSync(fd)
      throw error
    }
    this.#fd = fd
  }

  /** Returns once the line is on the disk. When it throws, the file is as it was. */
  append(json: string): void {
    const fd = this.#openFd()
    const line = Buffer.from(`${checksum(json)} ${json}\n`)
    try {
      for (let done = 0; done < line.length; ) {
        done += writeSync(fd, line, done, line.length - done, this.#size + done)
      }
      fsyncSync(fd)
    } catch (error) {
      ftruncateSync(fd, this.#size)
      throw new StorageError(codeOf(error), `${this.#path} cannot be written.`, { cause: error })
    }
    this.#size += line.length
  }

  assertOpen(): void {
    this.#openFd()
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
  }

  #openFd(): number {
    if (this.#fd === null) throw new StorageError('STORAGE_CLOSED', `${this.#path} was closed.`)
    return this.#fd
  }
}

/** How many bytes of the file are good. */
function replayLines(content: Buffer, path: string, replay: (json: string) => void): number {
  for (let start = 0, number = 1; start < content.length; number++) {
    const end = content.indexOf(NEWLINE, start)
    const json = end === -1 ? null : checked(content.toString('utf8', start, end))
    const isLast = end === -1 || end === content.length - 1
    if (json === null) {
      if (isLast) return start
      throw new StorageError('STORAGE_CORRUPT', `Line ${number} of ${path} is damaged. Restore the file from a backup.`)
    }
    replay(json)
    start = end + 1
  }
  return content.length
}

function checked(line: string): string | null {
  const at = line.indexOf(' ')
  const json = line.slice(at + 1)
  return line.slice(0, at) === checksum(json) ? json : null
}

function checksum(json: string): string {
  return createHash('sha256').update(json).digest('hex').slice(0, 16)
}

/** The name of a new file is on the disk only when its folder is. */
function syncFolder(path: string): void {
  if (process.platform === 'win32') return
  const folder = openSync(dirname(path), 'r')
  fsyncSync(folder)
  closeSync(folder)
}

function codeOf(error: unknown): StorageErrorCode {
  const code = error instanceof Error && 'code' in error ? error.code : null
  return code === 'ENOSPC' ? 'STORAGE_FULL' : code === 'EROFS' ? 'STORAGE_READONLY' : 'STORAGE_UNAVAILABLE'
}
