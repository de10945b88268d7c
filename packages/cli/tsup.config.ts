import { defineConfig } from 'tsup'

export default defineConfig({
  entry: ['src/durably.ts'],
  format: 'esm',
  target: 'node20',
  platform: 'node',
  splitting: true,
  clean: true,
})
