import { fileURLToPath } from 'node:url'
import { MACHINE_SETUP, testProject } from '../../vitest.preset.ts'

const project = testProject('browser-demo')
const BUILT_SITE = fileURLToPath(new URL('test/built-site.ts', import.meta.url))

export default { ...project, test: { ...project.test, globalSetup: [MACHINE_SETUP, BUILT_SITE] } }
