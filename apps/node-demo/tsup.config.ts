import { defineConfig } from 'tsup'

export default defineConfig({
  entry: ['src/main.ts', 'src/worker.ts'],
  format: 'esm',
  target: 'node20',
  platform: 'node',
  clean: true,
})
