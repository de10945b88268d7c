import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { expect } from 'vitest'
import { runChild } from './child'
import { ROOT } from './root'
import { itInFullLane } from './full-lane'

itInFullLane('turns the changesets into versions and changelogs', () => {
  const copy = mkdtempSync(join(tmpdir(), 'durably-changesets-'))
  try {
    const members = ['packages', 'apps', 'examples'].flatMap((folder) =>
      readdirSync(join(ROOT, folder)).map((name) => join(folder, name, 'package.json')),
    )
    for (const path of ['package.json', 'pnpm-workspace.yaml', '.changeset', 'test/package.json', ...members]) {
      if (existsSync(join(ROOT, path))) cpSync(join(ROOT, path), join(copy, path), { recursive: true })
    }
    const cli = createRequire(join(ROOT, 'package.json')).resolve('@changesets/cli/bin.js')
    runChild({ command: execPath, args: [cli, 'version'], cwd: copy })
    const { version } = JSON.parse(readFileSync(join(copy, 'packages/durably/package.json'), 'utf8'))
    expect(version).toMatch(/^\d+\.\d+\.\d+$/)
    expect(version).not.toBe('0.0.0')
    expect(existsSync(join(copy, 'packages/durably/CHANGELOG.md'))).toBe(true)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
})
