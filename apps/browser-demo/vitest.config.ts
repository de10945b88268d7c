import { fileURLToPath } from 'node:url'
import { MACHINE_SETUP, sharingProject } from '../../vitest.preset.ts'

const project = sharingProject('browser-demo')
const BUILT_SITE = fileURLToPath(new URL('test/built-site.ts', import.meta.url))

export default { ...project, test: { ...project.test, globalSetup: [MACHINE_SETUP, BUILT_SITE] } }
