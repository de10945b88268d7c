import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createDiskFiles } from '../src/disk-files'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'durably-demo-test-'))
})
afterEach(() => rm(folder, { recursive: true }))

test('files are read in ranges and replaced as a whole', async () => {
  const files = createDiskFiles(folder)
  await files.write('deep/file', Buffer.from('a longer first version'))
  await files.write('deep/file', Buffer.from('0123456789'))
  expect(await files.size('deep/file')).toBe(10)
  expect(Buffer.from(await files.read('deep/file', 3, 6)).toString()).toBe('345')
  expect(Buffer.from(await files.read('deep/file', 8, 99)).toString()).toBe('89')
  expect(await readdir(join(folder, 'deep'))).toEqual(['file'])
  await expect(files.size('nothing')).rejects.toThrow('ENOENT')
})
