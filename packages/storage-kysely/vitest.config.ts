import { sharingProject } from '../../vitest.preset.ts'

export default sharingProject('storage-kysely', ['test/**/*.test.ts'])
