import { testProject } from '../../vitest.preset.ts'

// Loads what the build made and drives a browser: after the tests that measure time.
const project = testProject('browser-plain')

export default { ...project, test: { ...project.test, sequence: { groupOrder: 4 } } }
