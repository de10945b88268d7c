import { sharingProject } from '../../vitest.preset.ts'
import { IN_BROWSERS } from './vitest.browser.config.ts'

const project = sharingProject('durably')

export default { ...project, test: { ...project.test, exclude: IN_BROWSERS } }
