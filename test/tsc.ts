import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ROOT } from './root.ts'

const MANIFEST = createRequire(join(ROOT, 'package.json')).resolve('@typescript/native/package.json')

/** The compiler that checks the workspace, as a program of Node. */
export const TSC = join(dirname(MANIFEST), 'bin', 'tsc')
