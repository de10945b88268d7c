import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exec, ROOT } from './pnpm.mjs'

const SHOWN = join(ROOT, 'docs', 'pictures')
/** Tests that look at pages in every state: pictures by the names of the states that they show. */
const LOOKS = [
  {
    project: 'dashboard',
    test: 'packages/dashboard/test/look.test.ts',
    folderIn: 'DASHBOARD_PICTURES',
    pictures: { runs: 'busy day', run: 'waiting' },
  },
  {
    project: 'agentic-web',
    test: 'apps/agentic-web/web/test/look.test.ts',
    folderIn: 'AGENTIC_PICTURES',
    pictures: { chat: 'conversation', approval: 'asked' },
  },
]

/** Takes the pictures of the docs anew, from pages as they run in their tests. */
async function takeAll() {
  const folder = mkdtempSync(join(tmpdir(), 'durably-pictures-'))
  mkdirSync(SHOWN, { recursive: true })
  for (const { project, test, folderIn, pictures } of LOOKS) {
    const code = await exec(['vitest', 'run', '--project', project, test], { env: { [folderIn]: folder } })
    if (code !== 0) return code
    for (const [name, state] of Object.entries(pictures)) {
      for (const colours of ['light', 'dark']) {
        copyFileSync(join(folder, `${state}, wide, ${colours}.png`), join(SHOWN, `${project}-${name}-${colours}.png`))
      }
    }
  }
  rmSync(folder, { recursive: true, force: true })
  return 0
}

process.exitCode = await takeAll()
