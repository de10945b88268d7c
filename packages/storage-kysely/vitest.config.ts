import { testProject } from '../../vitest.preset.ts'

export default testProject('storage-kysely', ['test/**/*.test.ts'])
