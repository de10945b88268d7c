import { afterTheBuild, testProject } from '../../vitest.preset.ts'

export default afterTheBuild(testProject('custom-storage', ['run.test.ts']))
