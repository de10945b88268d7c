import { fileURLToPath } from 'node:url'
import { MACHINE_SETUP, sharingProject } from '../../vitest.preset.ts'

const project = sharingProject('dashboard', ['src/**/*.test.ts', 'ui/**/*.test.ts', 'test/**/*.test.ts'])
const BUILT_PAGE = fileURLToPath(new URL('test/built-page.ts', import.meta.url))

export default { ...project, test: { ...project.test, globalSetup: [MACHINE_SETUP, BUILT_PAGE] } }
