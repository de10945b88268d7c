import { createReadStream, existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PAGE = import.meta.dirname
const DURABLY = dirname(fileURLToPath(import.meta.resolve('@coji/durably/browser/durably.js')))
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' }
// What SQLite needs to store in a browser; every host of such a page has to send these two.
const ISOLATED = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' }

if (!existsSync(DURABLY)) {
  console.error('There is no bundler-free durably yet. Build it: npm run build (at the root of the repository)')
  process.exit(1)
}

/** The file behind a path, or null. No path leaves its folder: `URL` resolves every `..`, and nothing decodes later. */
function fileOf(path) {
  if (!URL.canParse(path, 'http://localhost')) return null
  const { pathname } = new URL(path, 'http://localhost')
  const file = pathname.startsWith('/durably/') ? join(DURABLY, pathname.slice(8)) : join(PAGE, pathname)
  const named = pathname.endsWith('/') ? join(file, 'index.html') : file
  const isShown = extname(named) in TYPES && !pathname.includes('/node_modules/')
  return isShown && existsSync(named) ? named : null
}

function answer(request, response) {
  const file = fileOf(request.url)
  if (file === null) return response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Not found\n')
  response.writeHead(200, { ...ISOLATED, 'Content-Type': TYPES[extname(file)], 'Cache-Control': 'no-cache' })
  return createReadStream(file).pipe(response)
}

const server = createServer(answer).listen(Number(process.env.PORT ?? 5180), 'localhost', () => {
  console.log(`http://localhost:${server.address().port}/`)
})
