import { inBrowsers, testProject } from '../../vitest.preset.ts'

export const IN_BROWSERS = ['test/tabs/**/*.test.ts', 'test/environment/**/*.test.ts']

export default inBrowsers(testProject('durably-browser', IN_BROWSERS))
