import { testProject } from '../../vitest.preset.ts'

export default testProject('cluster-example')
