import { existsSync } from 'node:fs'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { licencesOf } from '../../../scripts/licences.mjs'

const BANNER =
  '/*! @coji/durably-dashboard, MIT. The licences of what it contains are in THIRD-PARTY.txt beside this file. */'

/** What goes into the page goes with its licences. */
function withLicences(): Plugin {
  return {
    name: 'licences',
    // After the minifier, which takes comments for superfluous.
    enforce: 'post',
    generateBundle(_options, bundle) {
      const chunks = Object.values(bundle).filter((file) => file.type === 'chunk')
      for (const chunk of chunks) chunk.code = `${BANNER}\n${chunk.code}`
      const inputs = chunks.flatMap(({ modules }) => Object.keys(modules)).filter(existsSync)
      this.emitFile({ type: 'asset', fileName: 'assets/THIRD-PARTY.txt', source: licencesOf(inputs) })
    },
  }
}

/** Tests take the packages of the workspace as they are written, with `--mode source`; a build takes what they were built to. */
export default defineConfig(({ command, mode }) => ({
  root: import.meta.dirname,
  base: './',
  plugins: [react(), withLicences()],
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
