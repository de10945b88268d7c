import { fileURLToPath } from 'node:url'
import { MACHINE_SETUP, sharingProject } from '../../vitest.preset.ts'

export const IN_BROWSERS = ['tabs', 'environment', 'hmr', 'firefox'].map((folder) => `test/${folder}/**/*.test.ts`)

const project = sharingProject('durably-browser', IN_BROWSERS)
const BUILT_SITE = fileURLToPath(new URL('test/tabs/built-site.ts', import.meta.url))

export default { ...project, test: { ...project.test, globalSetup: [MACHINE_SETUP, BUILT_SITE] } }
