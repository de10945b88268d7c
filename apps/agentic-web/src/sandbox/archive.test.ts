import { describe, expect, it } from 'vitest'
import { DamagedArchive, packFiles, unpackFiles } from './archive'

const file = (path: string, text: string) => ({ path, content: new Uint8Array(Buffer.from(text)) })

describe('an archive of files', () => {
  it('is read as it was written', () => {
    const files = [file('a', ''), file('ä/b.txt', 'x'.repeat(512)), file(`${'d/'.repeat(4)}${'n'.repeat(150)}`, 'long')]
    expect(unpackFiles(packFiles(files))).toEqual(files)
  })

  it('ends what is cut, changed or made up', () => {
    const archive = Buffer.from(packFiles([file('a', 'content')]))
    expect(() => unpackFiles(archive.subarray(0, 600))).toThrow(DamagedArchive)
    expect(() => unpackFiles(archive.subarray(0, 512))).toThrow(DamagedArchive)
    archive.write('7', 124)
    expect(() => unpackFiles(archive)).toThrow('broken header')
    expect(() => unpackFiles(Buffer.from('not an archive'))).toThrow(DamagedArchive)
  })
})
