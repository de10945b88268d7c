import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { it } from 'node:test'
import type { Storage } from '@coji/durably-core/storage'
import { casesFor, type ContractStorage, type StorageContractSetup } from '@coji/durably-core/testing'
import { openJsonLinesStorage } from '../src/json-lines-storage.ts'
import { newFolder } from './folder.ts'

/** What a process leaves that is killed while it writes a line. */
const TORN = '0123456789abcdef {"runs":[{"id":"01J'

const setup: StorageContractSetup = {
  async open(): Promise<ContractStorage> {
    const folder = newFolder()
    const file = folder.path('runs.jsonl')
    const opened: Storage[] = []
    const open = () => {
      const storage = openJsonLinesStorage(file)
      opened.push(storage)
      return storage
    }
    return {
      storage: open(),
      async reopen() {
        appendFileSync(file, TORN)
        return open()
      },
      async close() {
        for (const storage of opened) await storage.close?.()
        folder.remove()
      },
    }
  },
}

const { cases, excluded } = casesFor([])

it('the contract is there, and no case of it is left out', () => {
  assert.ok(cases.length > 200, `${cases.length} cases`)
  assert.ok(cases.filter(({ name }) => name.startsWith('reopen: ')).length > 10)
  assert.deepEqual(excluded, [])
})

for (const { name, run } of cases) it(name, () => run(setup))
