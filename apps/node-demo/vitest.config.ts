import { sharingProject } from '../../vitest.preset.ts'

export default sharingProject('node-demo')
