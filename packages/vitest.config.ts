import { sharingProject } from '../vitest.preset.ts'
import { IN_BROWSERS } from './durably/vitest.browser.config.ts'

/** Those that need nothing but Node and databases are one project: what they import is transformed once, and loaded once by a process. */
const FOLDERS = ['core', 'plugins', 'cluster', 'server', 'storage-kysely', 'durably']

const project = sharingProject(
  'packages',
  FOLDERS.flatMap((folder) => [`${folder}/src/**/*.test.ts`, `${folder}/test/**/*.test.ts`]),
)

export default { ...project, test: { ...project.test, exclude: IN_BROWSERS.map((files) => `durably/${files}`) } }
