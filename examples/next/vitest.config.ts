import { fileURLToPath } from 'node:url'
import { testProject } from '../../vitest.preset.ts'

const project = testProject('next')
const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))

/** Nothing is installed here: what the route handlers import is taken from where the workspace has it. The page is built. */
const alias = [
  { find: /^@coji\/durably$/, replacement: path('packages/durably/src/index.ts') },
  { find: /^@coji\/durably\/(\w+)$/, replacement: path('packages/durably/src/$1.ts') },
  { find: /^@coji\/durably-server$/, replacement: path('packages/server/src/index.ts') },
  { find: /^@coji\/durably-dashboard$/, replacement: path('packages/dashboard/dist/index.js') },
  { find: /^@coji\/durably-server\/client$/, replacement: path('packages/server/src/client/index.ts') },
  { find: /^@hono\/node-server$/, replacement: path('packages/server/node_modules/@hono/node-server') },
  { find: /^zod$/, replacement: path('packages/server/node_modules/zod') },
]

export default { ...project, resolve: { ...project.resolve, alias } }
