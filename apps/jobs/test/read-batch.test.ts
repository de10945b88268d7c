import { describe, expect, test } from 'vitest'
import { createMemoryFiles } from '../src/memory-files'
import { readBatch } from '../src/read-batch'
import { splitLines } from '../src/split'
import { splitCsv } from '../src/split-csv'
import { toBytes } from '../src/text'

async function fileOf(content: string | Uint8Array) {
  const source = createMemoryFiles()
  const bytes = typeof content === 'string' ? toBytes(content) : content
  await source.write('file', bytes)
  return { source, file: 'file', size: bytes.byteLength }
}

describe('readBatch', () => {
  test('goes through a file of wide characters in batches, whatever the range cuts', async () => {
    const lines = Array.from({ length: 60_000 }, (_, index) => `${index} é東🎁`.repeat(1 + (index % 3)))
    const file = await fileOf(lines.join('\r\n'))
    const found: string[] = []
    let offset = 0
    while (offset < file.size) {
      const batch = await readBatch({ ...file, offset, limit: 7_001, split: splitLines })
      expect(batch.items.length).toBe(Math.min(7_001, lines.length - found.length))
      found.push(...batch.items)
      offset = batch.nextOffset
    }
    expect(found).toEqual(lines)
  })

  test('reads no more than a range at once', async () => {
    const file = await fileOf('x,y\n'.repeat(500_000))
    let largest = 0
    const source = {
      ...file.source,
      read: (reference: string, start: number, end: number) => {
        largest = Math.max(largest, end - start)
        return file.source.read(reference, start, end)
      },
    }
    const batch = await readBatch({ ...file, source, offset: 0, limit: 500_000, split: splitCsv })
    expect(batch.items).toHaveLength(500_000)
    expect(largest).toBe(256 * 1024)
  })

  test('takes a record that is longer than a range', async () => {
    const note = 'n'.repeat(1_000_000)
    const batch = await readBatch({ ...(await fileOf(`"${note}",b\nc,d\n`)), offset: 0, limit: 9, split: splitCsv })
    expect(batch.items.map((fields) => fields.length)).toEqual([2, 2])
    expect(batch.items[0]?.[0]).toBe(note)
  })

  test('refuses a quote that is never closed instead of reading the rest as one field', async () => {
    const file = await fileOf(`a,"b\n${'c,d\n'.repeat(2_500_000)}`)
    await expect(readBatch({ ...file, offset: 0, limit: 9, split: splitCsv })).rejects.toThrow('An unclosed quote?')
  })

  test('refuses bytes that are not UTF-8, and says where', async () => {
    const file = await fileOf(new Uint8Array([97, 10, 0xff, 0xfe, 10]))
    await expect(readBatch({ ...file, offset: 0, limit: 9, split: splitLines })).rejects.toThrow(
      'not UTF-8: file at byte 0',
    )
  })

  test('refuses a file that ends inside a character', async () => {
    const file = await fileOf(new Uint8Array([97, 10, 0xe6, 0x9d]))
    await expect(readBatch({ ...file, offset: 0, limit: 9, split: splitLines })).rejects.toThrow('not UTF-8')
  })
})
