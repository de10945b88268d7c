import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { node24 } from './node-24'
import { ROOT } from './root'

it('brings Node 24 where no install script takes it for its own Node', () => {
  expect(existsSync(node24())).toBe(true)
  expect(existsSync(join(ROOT, 'node_modules', '.bin', 'node'))).toBe(false)
  expect(existsSync(join(ROOT, 'node_modules', '.pnpm', 'node_modules', '.bin', 'node'))).toBe(false)
})
