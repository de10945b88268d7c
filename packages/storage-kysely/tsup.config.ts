import { defineConfig } from 'tsup'
import { libraryPreset } from '../../tsup.preset'

export default defineConfig({
  ...libraryPreset(),
  esbuildOptions(options, { format }) {
    // Where a file of CJS is, which the native part of libSQL is looked up from.
    if (format === 'cjs') options.define = { ...options.define, 'import.meta.url': '__filename' }
  },
})
