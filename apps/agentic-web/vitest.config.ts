import { testProject } from '../../vitest.preset.ts'

export default testProject('agentic-web', ['{src,test,web}/**/*.test.ts'])
