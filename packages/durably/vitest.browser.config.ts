import { testProject } from '../../vitest.preset.ts'

export const IN_BROWSERS = ['tabs', 'environment', 'hmr', 'firefox'].map((folder) => `test/${folder}/**/*.test.ts`)

export default testProject('durably-browser', IN_BROWSERS)
