import { fileURLToPath } from 'node:url'
import { MACHINE_SETUP, POSTGRES_SETUP, sharingProject } from '../../vitest.preset.ts'

const project = sharingProject('cli')
const BUNDLED_PROGRAMS = fileURLToPath(new URL('test/bundled-programs.ts', import.meta.url))

export default { ...project, test: { ...project.test, globalSetup: [MACHINE_SETUP, POSTGRES_SETUP, BUNDLED_PROGRAMS] } }
