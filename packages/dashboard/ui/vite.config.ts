import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** Tests take the packages of the workspace as they are written, with `--mode source`; a build takes what they were built to. */
export default defineConfig(({ command, mode }) => ({
  root: import.meta.dirname,
  base: './',
  plugins: [react()],
  resolve: {
    conditions: [
      ...(command === 'serve' || mode === 'source' ? ['@coji/durably-source'] : []),
      'module',
      'browser',
      'development|production',
    ],
    dedupe: ['react', 'react-dom'],
  },
  build: { target: 'es2022', modulePreload: false, assetsInlineLimit: 0 },
}))
