import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT, run } from './pnpm.mjs'

const COMPILER = join(ROOT, 'node_modules', '@typescript', 'native', 'bin', 'tsc')

/** Everything as one program, which reads what many import once; and by themselves those that must do without Node. */
const PROGRAMS = ['.', 'examples', 'packages/core', 'apps/jobs']

/** Answers an exit code, of the first program that has an error. */
export async function checkTypes({ quiet = false } = {}) {
  for (const program of PROGRAMS) {
    const code = await run(process.execPath, [COMPILER, '-p', program], { quiet })
    if (code !== 0) return code
  }
  return 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await checkTypes()
