import { afterTheBuild, testProject } from '../../vitest.preset.ts'

export default afterTheBuild(testProject('task-queue'))
