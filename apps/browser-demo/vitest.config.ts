import { fileURLToPath } from 'node:url'
import { inBrowsers, testProject } from '../../vitest.preset.ts'

const project = inBrowsers(testProject('browser-demo'))

export default {
  ...project,
  test: {
    ...project.test,
    globalSetup: fileURLToPath(new URL('test/built-site.ts', import.meta.url)),
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
}
