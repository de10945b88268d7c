import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

it('a storage of its own, on the packed core alone, passes the contract and resumes a killed job', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['run.mjs'], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
    timeout: 290_000,
  })
  expect(status, `${stdout}\n${stderr}`).toBe(0)
}, 300_000)
