import { testProject } from '../../vitest.preset.ts'

export default testProject('dashboard', ['ui/**/*.test.ts', 'test/**/*.test.ts'])
