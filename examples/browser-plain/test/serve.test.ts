import { once } from 'node:events'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type ExampleServer } from './server'

let server: ExampleServer

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.close())

/** Asks with a path as it is: `fetch` and browsers would tidy it up. */
async function get(path: string) {
  const { hostname, port } = new URL(server.url)
  const asked = request({ hostname, port, path }).end()
  const [response] = await once(asked, 'response')
  response.resume()
  return { status: response.statusCode as number, headers: response.headers as Record<string, string> }
}

describe('the server of the example', () => {
  it.each([
    ['/', 'text/html'],
    ['/main.js', 'text/javascript'],
    ['/style.css', 'text/css'],
    ['/durably/durably.js', 'text/javascript'],
    ['/durably/worker.js', 'text/javascript'],
    ['/durably/sqlite3.wasm', 'application/wasm'],
    ['/durably/sqlite3-opfs-async-proxy.js', 'text/javascript'],
  ])('serves %s as %s, with the headers of an isolated page', async (path, type) => {
    const { status, headers } = await get(path)
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': type,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
    })
  })

  it.each([
    '/serve.mjs',
    '/package.json',
    '/test/',
    '/nothing.js',
    '/durably/',
    '/durably/../index.js',
    '/durably/..%2findex.js',
    '/durably/%2e%2e/index.js',
    '/durably/..\\index.js',
    '/durably//../../index.js',
    '/../../test/chromium.js',
    '/node_modules/@coji/durably/dist/index.js',
    '/node_modules/@coji/durably/dist/browser/durably.js',
    '//durably/durably.js/../../index.js',
    '//[',
  ])('does not serve %s', async (path) => {
    expect((await get(path)).status).toBe(404)
  })
})
