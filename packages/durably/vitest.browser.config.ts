import { testProject } from '../../vitest.preset.ts'

export const IN_BROWSERS = ['test/tabs/**/*.test.ts', 'test/environment/**/*.test.ts']

export default testProject('durably-browser', IN_BROWSERS)
