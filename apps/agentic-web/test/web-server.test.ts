import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createWebServer } from '../src/web-server/server'

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server that says what it was asked for, and with which cookie. */
async function startEcho(asked: string[]): Promise<string> {
  return listening(
    createServer(({ url, headers }, response) => {
      asked.push(`${url} ${headers.cookie}`)
      response.end('echo')
    }),
  )
}

/** A path is sent as it is, which neither `fetch` nor a browser's address bar would do. */
function get(host: string, path: string): Promise<{ readonly status: number | undefined; readonly text: string }> {
  const [hostname, port] = host.split(':')
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, headers: { cookie: 'login=secret' } }, async (response) => {
      let text = ''
      for await (const piece of response) text += piece
      resolve({ status: response.statusCode, text })
    })
      .once('error', reject)
      .end()
  })
}

it('hands requests to the api and to nobody else, whatever their address is', async () => {
  const [ofApi, ofOthers]: [string[], string[]] = [[], []]
  const [api, other] = [await startEcho(ofApi), await startEcho(ofOthers)]
  const folder = await mkdtemp(join(tmpdir(), 'agentic-web-site-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'index.html'), 'the page')
  const web = await listening(createWebServer({ folder, apiUrls: [`http://${api}`] }))

  expect(await get(web, '/api/me?a=1')).toEqual({ status: 200, text: 'echo' })
  expect(await get(web, '/api//x/../y?z=//a')).toEqual({ status: 200, text: 'echo' })
  const elsewhere = [
    `//${other}/api/x`,
    `/\\${other}/api/x`,
    `http://${other}/api/x`,
    `//user@${other}/auth/callback`,
    '//',
    '*',
    '///api/x',
  ]
  for (const path of elsewhere) expect(await get(web, path), path).toMatchObject({ status: 400 })
  expect(await get(web, '/apiary')).toEqual({ status: 200, text: 'the page' })
  expect(ofOthers).toEqual([])
  expect(ofApi).toEqual(['/api/me?a=1 login=secret', '/api//x/../y?z=//a login=secret'])
})
