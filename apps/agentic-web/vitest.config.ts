import { sharingProject } from '../../vitest.preset.ts'

export default sharingProject('agentic-web', ['{src,test,web}/**/*.test.ts'])
