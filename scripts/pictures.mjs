import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exec, ROOT } from './pnpm.mjs'

const SHOWN = join(ROOT, 'docs', 'pictures')
/** States of the dashboard that its test looks at, by the names of the pictures of them. */
const PICTURES = { runs: 'busy day', run: 'waiting' }

/** Takes the pictures of the docs anew, from the dashboard as it runs in its test. */
const folder = mkdtempSync(join(tmpdir(), 'durably-pictures-'))
const look = ['vitest', 'run', '--project', 'dashboard', 'packages/dashboard/test/look.test.ts']
process.exitCode = await exec(look, { env: { DASHBOARD_PICTURES: folder } })
mkdirSync(SHOWN, { recursive: true })
for (const [name, state] of Object.entries(PICTURES)) {
  for (const colours of ['light', 'dark']) {
    copyFileSync(join(folder, `${state}, wide, ${colours}.png`), join(SHOWN, `dashboard-${name}-${colours}.png`))
  }
}
rmSync(folder, { recursive: true, force: true })
