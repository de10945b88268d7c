import { env } from 'node:process'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/**
 * What a model wrote is shown in this page. Should it ever get past the sanitizer, it finds nowhere to send anything: no
 * script, picture, frame or form of another host.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

/** Only of what is built: the development server has scripts of its own in the page. */
function withPolicy(): Plugin {
  return {
    name: 'content-security-policy',
    apply: 'build',
    transformIndexHtml: () => [
      { tag: 'meta', attrs: { 'http-equiv': 'Content-Security-Policy', content: POLICY }, injectTo: 'head-prepend' },
    ],
  }
}

const api = env['API_URL'] ?? 'http://localhost:8080'

/** The packages of the workspace are taken as they are written: this application is built without them being built. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [react(), withPolicy()],
  resolve: {
    conditions: ['@coji/durably-source', 'module', 'browser', 'development|production'],
    dedupe: ['react', 'react-dom'],
  },
  server: { proxy: { '/api': api, '/auth': api } },
  build: { outDir: '../dist/web', target: 'es2022', modulePreload: false, assetsInlineLimit: 0 },
})
