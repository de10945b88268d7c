import { defineConfig } from 'tsup'

export default defineConfig({
  entry: {
    api: 'src/api/main.ts',
    worker: 'src/worker/main.ts',
    agentic: 'src/local/main.ts',
    keys: 'src/keys/main.ts',
  },
  format: 'esm',
  target: 'node20',
  platform: 'node',
  clean: true,
})
