import { testProject } from '../../vitest.preset.ts'

export default testProject('custom-storage', ['run.test.ts'])
