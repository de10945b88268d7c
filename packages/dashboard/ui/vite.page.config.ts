import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { defineConfig, mergeConfig, type Plugin } from 'vite'
import base from './vite.config.ts'

const ENTRY = join(import.meta.dirname, 'page.tsx')

/** What `page.tsx` exports needs the types of nobody else. */
function withDeclarations(): Plugin {
  return {
    name: 'declarations',
    generateBundle() {
      const compilerOptions = { jsx: ts.JsxEmit.ReactJSX, declaration: true }
      const { outputText } = ts.transpileDeclaration(readFileSync(ENTRY, 'utf8'), { compilerOptions, fileName: ENTRY })
      this.emitFile({ type: 'asset', fileName: 'assets/page.d.ts', source: outputText })
    },
  }
}

/** The page as a module that other pages mount, with everything in it. */
export default defineConfig((environment) =>
  mergeConfig(base(environment), {
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [withDeclarations()],
    build: {
      outDir: '../dist',
      emptyOutDir: false,
      lib: { entry: ENTRY, formats: ['es'], fileName: () => 'assets/page.js' },
    },
  }),
)
