/** A file of a session. They live in the database; a tool call has them in memory, or laid out in a sandbox. */
export interface SessionFile {
  readonly path: string
  readonly content: Uint8Array
}

/** What a call changes: all of it is stored with the result of its step, or none. */
export interface FileChanges {
  readonly written: readonly SessionFile[]
  readonly removed: readonly string[]
}

export const NO_CHANGES: FileChanges = { written: [], removed: [] }

/** Of one session. */
export const QUOTA = { files: 200, fileBytes: 1024 * 1024, totalBytes: 4 * 1024 * 1024 } as const

const PATH = { bytes: 200, depth: 8 } as const

/** Control characters, line and direction marks among them: a name must not look like another one. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/u

/** Why a path is not one of a session, or null. Paths are relative, parted by `/`, and lead nowhere else. */
export function troubleWithPath(path: string): string | null {
  if (path === '') return 'it is empty'
  if (Buffer.byteLength(path) > PATH.bytes) return `it is longer than ${PATH.bytes} bytes`
  if (UNSEEN.test(path)) return 'it has characters that cannot be seen'
  if (path !== path.normalize('NFC')) return 'it is not in the composed form (NFC)'
  if (path.includes('\\')) return 'its parts are parted by /'
  const parts = path.split('/')
  if (parts.length > PATH.depth) return `it is more than ${PATH.depth} folders deep`
  if (path.startsWith('/')) return 'it begins with /: paths begin in the folder of the session'
  return parts.some((part) => part === '' || part === '.' || part === '..') ? 'it has an empty part, . or ..' : null
}

/** What is to be stored so that `before` becomes `after`. */
export function changesBetween(before: readonly SessionFile[], after: readonly SessionFile[]): FileChanges {
  const old = new Map(before.map((file) => [file.path, file.content]))
  const kept = new Set(after.map((file) => file.path))
  return {
    written: after.filter(({ path, content }) => !isSame(old.get(path), content)),
    removed: before.filter(({ path }) => !kept.has(path)).map(({ path }) => path),
  }
}

function isSame(old: Uint8Array | undefined, content: Uint8Array): boolean {
  return old !== undefined && Buffer.compare(old, content) === 0
}

/** What a file is without its content. */
export interface FileEntry {
  readonly path: string
  readonly size: number
}

/** Why these files cannot be those of a session, or null: said to the model, which can do something about it. */
export function troubleWithFiles(files: readonly FileEntry[]): string | null {
  if (files.length > QUOTA.files) return `A session has at most ${QUOTA.files} files; these would be ${files.length}.`
  const total = files.reduce((sum, { size }) => sum + size, 0)
  if (total > QUOTA.totalBytes) return `The files of a session have at most ${QUOTA.totalBytes} bytes; these: ${total}.`
  for (const { path, size } of files) {
    const trouble = troubleWithPath(path)
    if (trouble !== null) return `${JSON.stringify(path)} is not a path of this session: ${trouble}.`
    if (size > QUOTA.fileBytes) return `${path} has ${size} bytes; a file has at most ${QUOTA.fileBytes}.`
  }
  return troubleBetween(files.map(({ path }) => path))
}

/** The same of one file that is written beside others. */
export function troubleWithFile(file: FileEntry, others: readonly FileEntry[]): string | null {
  return troubleWithFiles([...others.filter(({ path }) => path !== file.path), file])
}

/** A name cannot be both a file and a folder. */
function troubleBetween(paths: readonly string[]): string | null {
  const files = new Set(paths)
  for (const path of paths) {
    const parts = path.split('/')
    for (let depth = 1; depth < parts.length; depth++) {
      const folder = parts.slice(0, depth).join('/')
      if (files.has(folder)) return `${folder} is a file, and ${path} would be in it.`
    }
  }
  return null
}
