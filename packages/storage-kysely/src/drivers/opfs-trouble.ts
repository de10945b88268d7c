import { StorageError } from '@coji/durably-core/storage'
import { opfsNames } from './opfs-path'

/** Browsers hand space out in pieces that grow with the file, so a write can fail while there is still a little left. */
const SMALLEST_PIECE = 4 * 1024 * 1024
const LARGEST_PIECE = 128 * 1024 * 1024

const PROBE = '.durably-space-'

/** SQLite rolls back by itself when it cannot write, which sqlite-wasm then does not expect. */
const FAILED_WRITE = /SQLITE_(IOERR|CANTOPEN)|cannot rollback - no transaction/

/** What SQLite says of a file that was removed while it had it open. */
const OF_NO_FILE = /SQLITE_(CORRUPT|NOTADB)|no such table/

/** What is wrong with the page itself, before anything is opened; `null` when OPFS can be used. */
export function obstacleToOpfs(file: string): StorageError | null {
  const { isSecureContext, crossOriginIsolated, navigator } = globalThis
  if (isSecureContext === false) return insecureContext(file)
  if (typeof navigator?.storage?.getDirectory !== 'function') {
    return cannotKeep(
      file,
      'this browser has no origin private file system (OPFS) here. Use a current one, outside of private mode.',
    )
  }
  if (typeof Worker === 'undefined') {
    return cannotKeep(file, 'SQLite needs a worker of its own, and a shared worker or service worker cannot start one.')
  }
  if (crossOriginIsolated === false) {
    return cannotKeep(
      file,
      'the page is not cross-origin isolated. Its server must send the headers "Cross-Origin-Opener-Policy: ' +
        'same-origin" and "Cross-Origin-Embedder-Policy: require-corp".',
    )
  }
  return null
}

/** SQLocal needs Web Locks and more even for a database in memory. */
export function insecureContext(file: string): StorageError {
  const { origin } = globalThis.location ?? { origin: 'it' }
  return new StorageError(
    'STORAGE_CANNOT_OPEN',
    `${file} cannot be opened: the page is not a secure context. Serve ${origin} over https, or use localhost.`,
  )
}

/** SQLocal turned to memory although the page looks right: finds out why by using the file system itself. */
export async function whyNotKept(file: string): Promise<StorageError> {
  let directory: FileSystemDirectoryHandle
  try {
    directory = await navigator.storage.getDirectory()
  } catch (error) {
    return cannotKeep(file, `the browser refuses its origin private file system (${String(error)}).`, error)
  }
  if (await isHeld(directory, file)) return heldByAnotherTab(file)
  if (await isFull(file)) return storageFull(file, undefined)
  const why = 'SQLite did not open it in the origin private file system; the console of the page says why.'
  const error = cannotKeep(file, why)
  unexplained.add(error)
  return error
}

const unexplained = new WeakSet<object>()

/** What was in the way is not there any more: a worker that was ended lets go of its file a moment later, or seconds. */
export function mayHavePassed(error: unknown): boolean {
  return typeof error === 'object' && error !== null && unexplained.has(error)
}

export function heldByAnotherTab(file: string, cause?: unknown): StorageError {
  return new StorageError(
    'STORAGE_HELD',
    `Another tab holds ${file} and does not let go; it may be frozen in the background. Bring it to the front or close ` +
      'it. Nothing was written.',
    { cause },
  )
}

const ROOM_IS_KEPT = 'Delete runs or files of the site: room is kept for that. Or free disk space.'
const NO_ROOM_IS_LEFT =
  'The room that is kept for deleting runs is used up as well: delete files of the site first, or free disk space.'

function storageFull(file: string, cause: unknown, advice = ROOM_IS_KEPT): StorageError {
  return new StorageError(
    'STORAGE_FULL',
    `${file}: the storage that the browser gives to this site is full: its quota is used up. ${advice}`,
    { cause },
  )
}

export function noRoomToDelete(file: string, cause: unknown): StorageError {
  return storageFull(file, cause, NO_ROOM_IS_LEFT)
}

/** SQLite reports a write that the browser refused for lack of space as an I/O error. */
export async function explainTrouble(error: unknown, file: string): Promise<unknown> {
  const text = error instanceof Error ? error.message : ''
  if (/SQLITE_BUSY/.test(text)) return heldByAnotherTab(file, error)
  if (/SQLITE_FULL/.test(text)) return storageFull(file, error)
  if ((FAILED_WRITE.test(text) || OF_NO_FILE.test(text)) && (await isGone(file))) return fileGone(file, error)
  if (FAILED_WRITE.test(text) && (await isFull(file))) return storageFull(file, error)
  return error
}

/** Neither SQLite nor the client knows the connection any more; a new one may. */
export function isLostConnection(error: unknown): boolean {
  return error instanceof Error && LOST.test(error.message)
}

const LOST = /SQLITE_(IOERR|CANTOPEN|CORRUPT|NOTADB)|cannot rollback - no transaction|Driver not initialized/

const gone = new WeakSet<object>()

/** Whether this is an error of a file that was there when it was opened. */
export function isOfGoneFile(error: unknown): boolean {
  return typeof error === 'object' && error !== null && gone.has(error)
}

function fileGone(file: string, cause: unknown): StorageError {
  const error = new StorageError(
    'STORAGE_CANNOT_OPEN',
    `${file} is gone: the data of this site was cleared, or the file was deleted, while this page had it open. Reload the ` +
      'page, or call migrate() again: both begin an empty one.',
    { cause },
  )
  gone.add(error)
  return error
}

const forMemory = new WeakSet<object>()

/** Whether this page, in this browser, can keep no file at all. */
export function isForMemory(error: unknown): boolean {
  return typeof error === 'object' && error !== null && forMemory.has(error)
}

function cannotKeep(file: string, why: string, cause?: unknown): StorageError {
  const otherwise = 'With { allowMemory: true } durably works in memory and loses everything with the tab.'
  const error = new StorageError('STORAGE_CANNOT_OPEN', `${file} cannot be kept: ${why} ${otherwise}`, { cause })
  forMemory.add(error)
  return error
}

/** Whether somebody has the file open at this moment, here or in another tab. */
export async function isInUse(file: string): Promise<boolean> {
  try {
    return await isHeld(await navigator.storage.getDirectory(), file)
  } catch {
    return false
  }
}

/** A file that is open cannot be written by other means either. Nothing is: what was begun is thrown away. */
async function isHeld(directory: FileSystemDirectoryHandle, file: string): Promise<boolean> {
  try {
    const writable = await (await find(directory, file)).createWritable()
    await writable.abort()
    return false
  } catch (error) {
    return isNamed(error, 'NoModificationAllowedError')
  }
}

/** Whether there is no such file any more. */
async function isGone(file: string): Promise<boolean> {
  try {
    await (await find(await navigator.storage.getDirectory(), file)).getFile()
    return false
  } catch (error) {
    return isNamed(error, 'NotFoundError')
  }
}

/** What the browser says of its quota need not be true, so a file of the size in question is asked for and thrown away. */
async function isFull(file: string): Promise<boolean> {
  try {
    const directory = await navigator.storage.getDirectory()
    const size = await sizeOf(directory, file)
    // Of its own: another tab may ask at the same time.
    const name = PROBE + crypto.randomUUID()
    const probe = await directory.getFileHandle(name, { create: true })
    const writable = await probe.createWritable()
    try {
      await writable.truncate(Math.max(SMALLEST_PIECE, Math.min(size, LARGEST_PIECE)))
      return false
    } finally {
      await writable.abort().catch(() => {})
      await directory.removeEntry(name).catch(() => {})
    }
  } catch (error) {
    return isNamed(error, 'QuotaExceededError')
  }
}

/** 0 for one that is not there yet. */
async function sizeOf(directory: FileSystemDirectoryHandle, file: string): Promise<number> {
  try {
    return (await (await find(directory, file)).getFile()).size
  } catch {
    return 0
  }
}

async function find(directory: FileSystemDirectoryHandle, file: string): Promise<FileSystemFileHandle> {
  const names = opfsNames(file)
  const last = names.pop() ?? file
  let folder = directory
  for (const name of names) folder = await folder.getDirectoryHandle(name)
  return folder.getFileHandle(last)
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof DOMException && error.name === name
}
