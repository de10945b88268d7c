import { testProject } from '../../vitest.preset.ts'

// Packs, installs and starts processes: after the tests that measure time.
const project = testProject('custom-storage', ['run.test.ts'])

export default { ...project, test: { ...project.test, sequence: { groupOrder: 4 } } }
