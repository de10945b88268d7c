import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// The bundler leaves `import 'x'` in the declarations of one entry for what others import, and drivers of other databases
// would have to be installed for its types. Such an import declares nothing.
const IMPORT_OF_NOTHING = /^import '[^']+';\n/gm

for (const name of readdirSync('dist').filter((file) => /\.d\.c?ts$/.test(file))) {
  const path = join('dist', name)
  const declarations = readFileSync(path, 'utf8')
  const own = declarations.replace(IMPORT_OF_NOTHING, '')
  if (own !== declarations) writeFileSync(path, own)
}
