import type { SessionFile } from '../files/session-file'

/** The files of a session as a tar archive (GNU), which is how they get into a sandbox and out of it. */

const BLOCK = 512
const FILE = '0'
const LONG_NAME = 'L'

export function packFiles(files: readonly SessionFile[]): Uint8Array {
  const blocks = files.flatMap(({ path, content }) => {
    const name = Buffer.from(path)
    const long = name.length > 100 ? entry('././@LongLink', LONG_NAME, Buffer.concat([name, Buffer.alloc(1)])) : []
    return [...long, ...entry(name.subarray(0, 100), FILE, content)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

function entry(name: string | Uint8Array, type: string, content: Uint8Array): Uint8Array[] {
  const header = Buffer.alloc(BLOCK)
  header.set(Buffer.from(name), 0)
  header.write('0000644\0', 100)
  header.write('0000000\0'.repeat(2), 108)
  header.write(`${content.byteLength.toString(8).padStart(11, '0')}\0`, 124)
  header.write(`${'0'.repeat(11)}\0`, 136)
  header.write(type, 156)
  header.write('ustar  \0', 257)
  header.write(`${checksum(header).toString(8).padStart(6, '0')}\0 `, 148)
  return [header, content, Buffer.alloc(padding(content.byteLength))]
}

function checksum(header: Uint8Array): number {
  return header.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 0x20 : byte), 0)
}

const padding = (size: number) => (BLOCK - (size % BLOCK)) % BLOCK

/** It was written by a process that may have meant harm: what is not understood ends it. */
export class DamagedArchive extends Error {
  override readonly name = 'DamagedArchive'
}

/** Its regular files. What else there is (links, pipes, devices, folders) is left behind. */
export function unpackFiles(archive: Uint8Array): SessionFile[] {
  const bytes = Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength)
  const files: SessionFile[] = []
  let longName: string | null = null
  for (let at = 0; ; ) {
    const header = bytes.subarray(at, at + BLOCK)
    if (header.length < BLOCK) throw new DamagedArchive('The archive ends too early.')
    if (header[0] === 0) return files
    const { name, type, size } = readHeader(header)
    const content = bytes.subarray(at + BLOCK, at + BLOCK + size)
    if (content.length < size) throw new DamagedArchive('The archive ends within a file.')
    at += BLOCK + size + padding(size)
    if (type === LONG_NAME) longName = text(content)
    else {
      if (type === FILE) files.push({ path: withoutDot(longName ?? name), content: new Uint8Array(content) })
      longName = null
    }
  }
}

function readHeader(header: Buffer): { name: string; type: string; size: number } {
  const size = text(header.subarray(124, 136)).trim()
  const sum = Number.parseInt(text(header.subarray(148, 156)), 8)
  if (!/^[0-7]+$/.test(size) || sum !== checksum(header)) throw new DamagedArchive('The archive has a broken header.')
  const type = String.fromCharCode(header[156] ?? 0)
  return { name: text(header.subarray(0, 100)), type: type === '\0' ? FILE : type, size: Number.parseInt(size, 8) }
}

/** Names that are not UTF-8 come out with replacement characters, and stay files of that name. */
function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0)
  return Buffer.from(end === -1 ? bytes : bytes.subarray(0, end)).toString('utf8')
}

const withoutDot = (path: string) => (path.startsWith('./') ? path.slice(2) : path)
