import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The folder of the bundler-free build. */
export function builtFolder(): string {
  const folder = fileURLToPath(new URL('.', import.meta.resolve('@coji/durably/browser/durably.js')))
  if (!existsSync(folder)) throw new Error('There is no bundler-free build of durably yet: npm run build')
  return folder
}
