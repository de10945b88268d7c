import { join } from 'node:path'
import react from '@vitejs/plugin-react'
import sqlocal from 'sqlocal/vite'
import { defineConfig } from 'vite'

/** SQLite on OPFS needs a page that is isolated from others. Every host of the built demo must send these. */
const ISOLATED = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
}

/**
 * While developing, and with `--mode source`, the packages of the workspace are taken as they are written. A build
 * takes what they were built to: that is what their users get.
 */
export default defineConfig(({ command, mode }) => ({
  base: './',
  plugins: [react(), sqlocal()],
  resolve: {
    conditions: [
      ...(command === 'serve' || mode === 'source' ? ['@coji/durably-source'] : []),
      'module',
      'browser',
      'development|production',
    ],
    dedupe: ['kysely', 'react', 'react-dom', 'sqlocal', 'zod'],
  },
  server: { headers: ISOLATED },
  preview: { headers: ISOLATED },
  build: {
    target: 'es2022',
    // React, Kysely and Zod, all of which the first screen needs.
    chunkSizeWarningLimit: 1000,
    rolldownOptions: { input: ['index.html', 'dashboard.html'].map((page) => join(import.meta.dirname, page)) },
  },
}))
